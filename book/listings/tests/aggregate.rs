//! Listings of the chapter on `#[aggregate]`.

use book_listings::{SqliteFile, postgres};
use outbox_runtime::prelude::*;
use outbox_runtime::{Aggregate, CustomPersistence, Error, RowLock};
use serde::{Deserialize, Serialize};
use sqlx::{Row, Sqlite, SqliteConnection};

// ANCHOR: id
typed_id! {
    /// What an order is known by.
    pub struct OrderId(String);
}
// ANCHOR_END: id

#[domain_event(version = 1)]
pub struct OrderPlaced {
    pub order_id: OrderId,
    pub total_cents: i64,
}

#[domain_event(version = 1)]
pub struct OrderCancelled {
    pub order_id: OrderId,
    pub reason: String,
}

// ANCHOR: value_object
#[value_object]
#[derive(Debug, Clone, PartialEq)]
pub struct Money {
    cents: i64,
    #[value_object(column = "iso")]
    currency: String,
}
// ANCHOR_END: value_object

// ANCHOR: column_types
#[derive(Debug, Clone, Copy, PartialEq, sqlx::Type)]
#[sqlx(type_name = "text", rename_all = "lowercase")]
pub enum OrderStatus {
    Placed,
    Cancelled,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct OrderLine {
    sku: String,
    quantity: u32,
}
// ANCHOR_END: column_types

// ANCHOR: order
#[aggregate(table = "orders", events(OrderPlaced, OrderCancelled))]
pub struct Order {
    id: OrderId,
    #[aggregate(column = "state")]
    status: OrderStatus,
    #[aggregate(embed)]
    total: Money,
    #[aggregate(json)]
    lines: Vec<OrderLine>,
    note: Option<String>,
    #[aggregate(skip)]
    warnings: Vec<String>,
    root: AggregateRoot,
}
// ANCHOR_END: order

// ANCHOR: behaviour
#[derive(Debug, PartialEq)]
pub enum OrderError {
    CancelledBefore,
}

impl Order {
    pub fn place(id: OrderId, total: Money, lines: Vec<OrderLine>) -> Self {
        let placed = OrderPlaced {
            order_id: id.clone(),
            total_cents: total.cents,
        };
        let mut order = Self {
            id,
            status: OrderStatus::Placed,
            total,
            lines,
            note: None,
            warnings: Vec::new(),
            root: AggregateRoot::new(),
        };
        order.raise(placed);
        order
    }

    pub fn cancel(&mut self, reason: &str) -> Result<(), OrderError> {
        if self.status == OrderStatus::Cancelled {
            return Err(OrderError::CancelledBefore);
        }
        self.status = OrderStatus::Cancelled;
        self.raise(OrderCancelled {
            order_id: self.id.clone(),
            reason: reason.to_owned(),
        });
        Ok(())
    }
}
// ANCHOR_END: behaviour

const ORDERS: &str = include_str!("../sql/orders.sql");

fn an_order() -> Order {
    let total = Money {
        cents: 12_000,
        currency: "EUR".to_owned(),
    };
    let line = OrderLine {
        sku: "lamp".to_owned(),
        quantity: 2,
    };
    Order::place(OrderId::from("order-1".to_owned()), total, vec![line])
}

#[tokio::test]
async fn a_mapped_aggregate_is_stored_and_loaded() -> Result<(), Error> {
    let file = SqliteFile::with_tables(ORDERS).await;
    let outbox = Outbox::new("ordering", file.pool.clone());
    outbox.migrate().await?;

    // ANCHOR: store
    let mut uow = outbox.begin(MessageContext::new()).await?;
    let mut order = an_order();
    uow.add(&mut order).await?;
    uow.commit().await?;

    let mut uow = outbox.begin(MessageContext::new()).await?;
    let mut order = uow
        .get::<Order>(&OrderId::from("order-1".to_owned()))
        .await?;
    assert_eq!(order.root().version(), 1);
    assert_eq!(order.lines.len(), 1);
    order
        .cancel("changed my mind")
        .expect("it was not cancelled before");
    uow.save(&mut order).await?;
    uow.commit().await?;
    // ANCHOR_END: store
    assert!(order.warnings.is_empty());

    let row = sqlx::query("SELECT state, total_cents, total_iso, lines, version FROM orders")
        .fetch_one(&file.pool)
        .await
        .expect("the order's row");
    assert_eq!(row.get::<String, _>(0), "cancelled");
    assert_eq!(
        (row.get::<i64, _>(1), row.get::<String, _>(2)),
        (12_000, "EUR".to_owned())
    );
    assert_eq!(row.get::<String, _>(3), r#"[{"sku":"lamp","quantity":2}]"#);
    assert_eq!(row.get::<i64, _>(4), 2);
    Ok(())
}

#[tokio::test]
async fn a_removed_aggregate_leaves_its_last_event() -> Result<(), Error> {
    let file = SqliteFile::with_tables(ORDERS).await;
    let outbox = Outbox::new("ordering", file.pool.clone());
    outbox.migrate().await?;
    let id = OrderId::from("order-1".to_owned());
    let mut uow = outbox.begin(MessageContext::new()).await?;
    uow.add(&mut an_order()).await?;
    uow.commit().await?;

    // ANCHOR: remove
    let mut uow = outbox.begin(MessageContext::new()).await?;
    let mut order = uow.get::<Order>(&id).await?;
    order
        .cancel("placed by mistake")
        .expect("it was not cancelled before");
    uow.remove(&mut order).await?; // the row goes, OrderCancelled stays
    uow.commit().await?;
    // ANCHOR_END: remove

    let mut uow = outbox.begin(MessageContext::new()).await?;
    assert!(uow.find::<Order>(&id).await?.is_none());
    let events: i64 = sqlx::query_scalar("SELECT count(*) FROM outbox_message")
        .fetch_one(&file.pool)
        .await
        .expect("a count");
    assert_eq!(events, 2);
    Ok(())
}

// ANCHOR: custom
#[aggregate(persistence = custom)]
pub struct Basket {
    id: OrderId,
    lines: Vec<(String, i64)>,
    root: AggregateRoot,
}

#[async_trait::async_trait]
impl CustomPersistence<Sqlite> for Basket {
    async fn load(
        connection: &mut SqliteConnection,
        id: &OrderId,
        _lock: RowLock, // on SQLite the transaction itself is the lock
    ) -> Result<Option<Self>, sqlx::Error> {
        let version = sqlx::query_scalar("SELECT version FROM basket WHERE id = ?")
            .bind(id)
            .fetch_optional(&mut *connection)
            .await?;
        let Some(version) = version else {
            return Ok(None);
        };
        let lines = sqlx::query_as(
            "SELECT sku, quantity FROM basket_line WHERE basket_id = ? ORDER BY sku",
        )
        .bind(id)
        .fetch_all(connection)
        .await?;
        Ok(Some(Self {
            id: id.clone(),
            lines,
            root: AggregateRoot::at_version(version),
        }))
    }

    async fn insert(&self, connection: &mut SqliteConnection) -> Result<bool, sqlx::Error> {
        let done =
            sqlx::query("INSERT INTO basket (id, version) VALUES (?, ?) ON CONFLICT DO NOTHING")
                .bind(&self.id)
                .bind(self.root.version())
                .execute(&mut *connection)
                .await?;
        if done.rows_affected() == 0 {
            return Ok(false); // somebody else stored it first
        }
        self.write_lines(connection).await?;
        Ok(true)
    }

    async fn update(
        &self,
        expected_version: i64,
        connection: &mut SqliteConnection,
    ) -> Result<bool, sqlx::Error> {
        let done = sqlx::query("UPDATE basket SET version = ? WHERE id = ? AND version = ?")
            .bind(self.root.version())
            .bind(&self.id)
            .bind(expected_version)
            .execute(&mut *connection)
            .await?;
        if done.rows_affected() == 0 {
            return Ok(false); // somebody else changed it first
        }
        self.write_lines(connection).await?;
        Ok(true)
    }

    async fn delete(
        &self,
        expected_version: i64,
        connection: &mut SqliteConnection,
    ) -> Result<bool, sqlx::Error> {
        let done = sqlx::query("DELETE FROM basket WHERE id = ? AND version = ?")
            .bind(&self.id)
            .bind(expected_version)
            .execute(connection)
            .await?;
        Ok(done.rows_affected() > 0) // the lines go with it: ON DELETE CASCADE
    }
}

impl Basket {
    async fn write_lines(&self, connection: &mut SqliteConnection) -> Result<(), sqlx::Error> {
        sqlx::query("DELETE FROM basket_line WHERE basket_id = ?")
            .bind(&self.id)
            .execute(&mut *connection)
            .await?;
        for (sku, quantity) in &self.lines {
            sqlx::query("INSERT INTO basket_line (basket_id, sku, quantity) VALUES (?, ?, ?)")
                .bind(&self.id)
                .bind(sku)
                .bind(quantity)
                .execute(&mut *connection)
                .await?;
        }
        Ok(())
    }
}
// ANCHOR_END: custom

#[tokio::test]
async fn a_custom_persistence_spans_two_tables() -> Result<(), Error> {
    let file = SqliteFile::with_tables(ORDERS).await;
    let outbox = Outbox::new("ordering", file.pool.clone());
    outbox.migrate().await?;
    let id = OrderId::from("basket-1".to_owned());
    let mut basket = Basket {
        id: id.clone(),
        lines: vec![("lamp".to_owned(), 2)],
        root: AggregateRoot::new(),
    };
    let mut uow = outbox.begin(MessageContext::new()).await?;
    uow.add(&mut basket).await?;
    uow.commit().await?;

    let mut uow = outbox.begin(MessageContext::new()).await?;
    let mut basket = uow.get::<Basket>(&id).await?;
    basket.lines.push(("rug".to_owned(), 1));
    uow.save(&mut basket).await?;
    uow.commit().await?;

    let mut uow = outbox.begin(MessageContext::new()).await?;
    let mut basket = uow.get::<Basket>(&id).await?;
    assert_eq!(basket.lines.len(), 2);
    assert_eq!(basket.root().version(), 2);
    uow.remove(&mut basket).await?;
    uow.commit().await
}

/// A JSON field fits both JSON types of PostgreSQL.
#[tokio::test]
async fn a_mapped_aggregate_is_stored_on_postgres() -> Result<(), Error> {
    let tables = [
        (
            "json",
            "CREATE TABLE orders (id text PRIMARY KEY, state text NOT NULL, total_cents bigint NOT NULL, \
             total_iso text NOT NULL, lines json NOT NULL, note text, version bigint NOT NULL)",
        ),
        (
            "jsonb",
            "CREATE TABLE orders (id text PRIMARY KEY, state text NOT NULL, total_cents bigint NOT NULL, \
             total_iso text NOT NULL, lines jsonb NOT NULL, note text, version bigint NOT NULL)",
        ),
    ];
    for (name, table) in tables {
        let Some(pool) = postgres(name, table).await else {
            return Ok(());
        };
        let outbox = Outbox::new("ordering", pool);
        outbox.migrate().await?;
        let mut uow = outbox.begin(MessageContext::new()).await?;
        uow.add(&mut an_order()).await?;
        uow.commit().await?;
        let mut uow = outbox.begin(MessageContext::new()).await?;
        let mut order = uow
            .get::<Order>(&OrderId::from("order-1".to_owned()))
            .await?;
        assert_eq!(order.lines, an_order().lines);
        order
            .cancel("no more needed")
            .expect("it was not cancelled before");
        uow.save(&mut order).await?;
        uow.commit().await?;
    }
    Ok(())
}
