use outbox_runtime::handler::AggregateRegistration;
use outbox_runtime::prelude::*;
use outbox_runtime::store::TableMapping;
use outbox_runtime::{Persist, ValueObject};
use serde::{Deserialize, Serialize};

typed_id! {
    /// A product.
    pub struct ProductId(String);
}

#[domain_event(version = 1)]
#[derive(Debug, PartialEq)]
pub struct Listed {
    pub id: ProductId,
}

#[domain_event(version = 1)]
pub struct Unlisted;

/// An amount.
#[value_object]
#[derive(Debug, Clone, PartialEq)]
pub struct Money {
    pub cents: i64,
    #[value_object(column = "cur")]
    pub currency: String,
    #[value_object(json)]
    pub parts: Vec<i64>,
}

#[derive(Debug, Clone, PartialEq, Default)]
pub struct Cache(pub Vec<u8>);

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Tag {
    pub name: String,
}

/// A product with each kind of field.
#[aggregate(
    table = "catalogue",
    type_name = "catalogue.Product",
    events(Listed, self::Unlisted)
)]
#[derive(Debug)]
pub struct Product {
    #[aggregate(id, column = "product_id")]
    pub key: ProductId,
    /// A keyword as a name.
    pub r#type: String,
    #[aggregate(column = "shown_name")]
    pub name: Option<String>,
    #[aggregate(json)]
    pub tags: Vec<Tag>,
    #[aggregate(embed)]
    pub price: Money,
    #[aggregate(embed, prefix = "old_")]
    pub old_price: Money,
    #[aggregate(skip)]
    pub cache: Cache,
    #[aggregate(column = "row_version")]
    root: AggregateRoot,
}

impl Product {
    pub fn new(key: &str) -> Self {
        let money = |cents| Money {
            cents,
            currency: "EUR".to_owned(),
            parts: vec![cents],
        };
        Self {
            key: ProductId::from(key.to_owned()),
            r#type: "book".to_owned(),
            name: None,
            tags: vec![Tag {
                name: "new".to_owned(),
            }],
            price: money(500),
            old_price: money(700),
            cache: Cache(vec![1]),
            root: AggregateRoot::new(),
        }
    }

    pub fn list(&mut self) {
        self.raise(Listed {
            id: self.key.clone(),
        });
    }

    pub fn unlist(&mut self) {
        self.raise(Unlisted);
    }
}

/// With defaults alone.
#[aggregate]
#[derive(Debug)]
pub struct HttpRequestLog {
    pub id: i64,
    root: AggregateRoot,
}

impl HttpRequestLog {
    pub fn new(id: i64) -> Self {
        Self {
            id,
            root: AggregateRoot::new(),
        }
    }
}

/// The root under another name.
type Root = AggregateRoot;

#[aggregate]
pub struct Aliased {
    #[aggregate(id)]
    pub number: i64,
    pub id: String,
    #[aggregate(root)]
    pub versions: Root,
}

fn columns(table: &TableMapping) -> Vec<&str> {
    table.columns().collect()
}

#[test]
fn defaults() {
    let request = HttpRequestLog::new(1);
    assert_eq!(HttpRequestLog::TYPE, "HttpRequestLog");
    assert_eq!(request.id(), &1);
    assert_eq!(request.root().version(), 0);
    let table = <HttpRequestLog as Persist<sqlx::Sqlite>>::table().unwrap();
    assert_eq!((table.schema(), table.table()), (None, "http_request_log"));
    assert_eq!(columns(table), ["id", "version"]);
}

#[test]
fn marks_win_over_names_and_types() {
    let aliased = Aliased {
        number: 1,
        id: "text".to_owned(),
        versions: AggregateRoot::at_version(4),
    };
    assert_eq!((aliased.id(), aliased.root().version()), (&1, 4));
    let table = <Aliased as Persist<sqlx::Sqlite>>::table().unwrap();
    assert_eq!(columns(table), ["number", "version", "id"]);
}

#[test]
fn columns_follow_from_the_fields() {
    assert_eq!(Money::COLUMNS, ["cents", "cur", "parts"]);
    assert_eq!(Product::TYPE, "catalogue.Product");
    let table = <Product as Persist<sqlx::Sqlite>>::table().unwrap();
    assert_eq!(
        columns(table),
        [
            "product_id",
            "row_version",
            "type",
            "shown_name",
            "tags",
            "price_cents",
            "price_cur",
            "price_parts",
            "old_cents",
            "old_cur",
            "old_parts",
        ]
    );
}

#[test]
fn raised_events_wait_in_the_root() {
    let mut product = Product::new("p-1");
    product.list();
    product.unlist();
    let listed: Vec<_> = product.root().pending_of::<Listed>().collect();
    assert_eq!(
        listed,
        [&Listed {
            id: ProductId::from("p-1".to_owned())
        }]
    );
    assert_eq!(product.root().pending().count(), 2);
}

#[test]
fn mapped_aggregates_register_themselves() {
    let found: Vec<_> = AggregateRegistration::all()
        .filter(|aggregate| aggregate.aggregate_type == "catalogue.Product")
        .collect();
    assert_eq!(found.len(), 1);
    assert_eq!((found[0].table)().table(), "catalogue");
    assert!(found[0].rust_type.ends_with("::aggregates::Product"));
    assert!(found[0].file.ends_with("aggregates.rs"));
}

#[test]
fn an_aggregate_can_be_declared_inside_a_function() {
    #[aggregate]
    struct Local {
        id: i64,
        root: AggregateRoot,
    }
    let local = Local {
        id: 3,
        root: AggregateRoot::new(),
    };
    assert_eq!(local.id(), &3);
}
