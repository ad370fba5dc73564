//! Listings of the chapter on `#[domain_event]`.

use book_listings::SqliteFile;
use outbox_runtime::prelude::*;
use outbox_runtime::{DecodeError, Error};
use serde::Deserialize;

// ANCHOR: plain
#[domain_event(version = 1)]
#[derive(Debug, Clone, PartialEq)]
pub struct OrderPlaced {
    pub order_id: String,
    pub total_cents: i64,
}
// ANCHOR_END: plain

// ANCHOR: constants
#[test]
fn name_and_version_are_constants() {
    assert_eq!(OrderPlaced::NAME, "OrderPlaced");
    assert_eq!(OrderPlaced::VERSION, 1);
    assert_eq!(OrderShipped::NAME, "shipping.order-shipped");
}
// ANCHOR_END: constants

// ANCHOR: name
#[domain_event(version = 1, name = "shipping.order-shipped")]
pub struct OrderShipped {
    pub order_id: String,
}
// ANCHOR_END: name

// ANCHOR: enum
#[domain_event(version = 1, name = "payment.answered", key = "{order_id}:answered")]
pub enum PaymentAnswered {
    Captured { order_id: String, cents: i64 },
    Declined { order_id: String, reason: String },
}
// ANCHOR_END: enum

// ANCHOR: serde
/// Derive serde yourself where its own attributes are needed.
#[domain_event(version = 1)]
#[derive(serde::Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AddressChanged {
    pub customer_id: String,
    #[serde(default)]
    pub house_number: Option<String>,
}
// ANCHOR_END: serde

#[test]
fn serde_attributes_count() {
    let event = AddressChanged {
        customer_id: "c1".to_owned(),
        house_number: None,
    };
    let payload = event.encode().expect("JSON");
    assert_eq!(payload, r#"{"customerId":"c1","houseNumber":null}"#);
}

// ANCHOR: upcast
/// What the first release wrote.
#[domain_event(version = 1, name = "customer.registered")]
pub struct CustomerRegisteredV1 {
    pub name: String,
}

/// The second release split the name.
#[domain_event(version = 2, name = "customer.registered", upcast_from = CustomerRegisteredV1)]
pub struct CustomerRegisteredV2 {
    pub first_name: String,
    pub last_name: String,
}

/// What is written now: the third release asked for the language.
#[domain_event(version = 3, name = "customer.registered", upcast_from = CustomerRegisteredV2)]
pub struct CustomerRegistered {
    pub first_name: String,
    pub last_name: String,
    pub language: String,
}

impl From<CustomerRegisteredV1> for CustomerRegisteredV2 {
    fn from(old: CustomerRegisteredV1) -> Self {
        let (first, last) = old.name.split_once(' ').unwrap_or(("", &old.name));
        Self {
            first_name: first.to_owned(),
            last_name: last.to_owned(),
        }
    }
}

impl From<CustomerRegisteredV2> for CustomerRegistered {
    fn from(old: CustomerRegisteredV2) -> Self {
        Self {
            first_name: old.first_name,
            last_name: old.last_name,
            language: "en".to_owned(), // what everybody spoke before we asked
        }
    }
}
// ANCHOR_END: upcast

// ANCHOR: decode
#[test]
fn an_event_of_the_first_release_is_read_by_the_third() -> Result<(), DecodeError> {
    assert_eq!(CustomerRegistered::OLDEST_VERSION, 1);
    let event = CustomerRegistered::decode(1, r#"{"name":"Ada Lovelace"}"#)?;
    assert_eq!(
        (event.first_name.as_str(), event.last_name.as_str()),
        ("Ada", "Lovelace")
    );
    assert_eq!(event.language, "en");
    Ok(())
}

#[test]
fn a_version_from_the_future_is_refused() {
    let answer = CustomerRegistered::decode(4, "{}");
    assert!(matches!(
        answer,
        Err(DecodeError::UnreadableVersion { newest: 3, .. })
    ));
}
// ANCHOR_END: decode

// ANCHOR: key
/// An order is paid once, whoever says so and however often.
#[domain_event(version = 1, key = "{order_id}:OrderPaid:v1")]
pub struct OrderPaid {
    pub order_id: String,
    pub cents: i64,
}
// ANCHOR_END: key

#[tokio::test]
async fn a_business_key_is_stored_once() -> Result<(), Error> {
    let file = SqliteFile::with_tables("").await;
    let outbox = Outbox::new("payment", file.pool.clone());
    outbox.migrate().await?;

    // ANCHOR: duplicate
    for attempt in 1..=2 {
        let mut uow = outbox.begin(MessageContext::new()).await?;
        uow.raise(OrderPaid {
            order_id: "order-1".to_owned(),
            cents: 12_000,
        })?;
        match uow.commit().await {
            Ok(()) => assert_eq!(attempt, 1),
            Err(Error::DuplicateEvent { keys, .. }) => {
                assert_eq!(attempt, 2); // the whole unit of work is rolled back
                assert_eq!(
                    keys,
                    [("OrderPaid".to_owned(), "order-1:OrderPaid:v1".to_owned())]
                );
            }
            Err(other) => return Err(other),
        }
    }
    // ANCHOR_END: duplicate
    Ok(())
}
