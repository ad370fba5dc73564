//! Listings of the chapter on `#[idempotent_handler]`.

use std::time::Duration;

use book_listings::SqliteFile;
use outbox_runtime::Error;
use outbox_runtime::prelude::*;
use sqlx::Sqlite;

typed_id! { pub struct Sku(String); }

#[domain_event(version = 1)]
pub struct OrderPaid {
    pub order_id: String,
    pub sku: Sku,
    pub quantity: i64,
}

#[domain_event(version = 1)]
pub struct StockReserved {
    pub order_id: String,
    pub quantity: i64,
}

#[aggregate(table = "stock", events(StockReserved))]
pub struct Stock {
    #[aggregate(id)]
    sku: Sku,
    available: i64,
    root: AggregateRoot,
}

#[derive(Debug, thiserror::Error)]
#[error("only {available} pieces are there")]
pub struct TooFew {
    available: i64,
}

impl Stock {
    pub fn reserve(&mut self, order_id: &str, quantity: i64) -> Result<(), TooFew> {
        if quantity > self.available {
            return Err(TooFew {
                available: self.available,
            });
        }
        self.available -= quantity;
        self.raise(StockReserved {
            order_id: order_id.to_owned(),
            quantity,
        });
        Ok(())
    }
}

// ANCHOR: errors
#[derive(Debug, thiserror::Error)]
pub enum ReserveError {
    #[error(transparent)]
    Store(#[from] Error),
    #[error(transparent)]
    TooFew(#[from] TooFew),
    #[error("{quantity} pieces are more than the limit of {limit}")]
    OverLimit { quantity: i64, limit: i64 },
}

impl Classify for ReserveError {
    fn failure_kind(&self) -> FailureKind {
        match self {
            Self::Store(error) => error.failure_kind(),
            // A delivery may fill the shelf.
            Self::TooFew(_) => FailureKind::Transient,
            // Asking again changes nothing.
            Self::OverLimit { .. } => FailureKind::Permanent,
        }
    }
}
// ANCHOR_END: errors

// ANCHOR: state
/// The application's state: any type that is `Clone + Send + Sync`.
#[derive(Clone)]
pub struct Limits {
    per_order: i64,
}
// ANCHOR_END: state

// ANCHOR: handler
#[idempotent_handler(
    consumer = "inventory.reserve-stock",
    key = "{event.order_id}:reserve:v1"
)]
async fn reserve_stock(
    event: Envelope<OrderPaid>,
    uow: &mut UnitOfWork<'_, Sqlite>,
    State(limits): State<Limits>,
) -> Result<(), ReserveError> {
    if event.quantity > limits.per_order {
        return Err(ReserveError::OverLimit {
            quantity: event.quantity,
            limit: limits.per_order,
        });
    }
    let mut stock = uow.get::<Stock>(&event.sku).await?;
    stock.reserve(&event.order_id, event.quantity)?;
    uow.save(&mut stock).await?;
    Ok(()) // the inbox row, the stock and StockReserved commit together
}
// ANCHOR_END: handler

// ANCHOR: generic
/// Keeps the stock's book: one line for each reservation.
#[aggregate(table = "reservations")]
pub struct Reservation {
    #[aggregate(id)]
    order_id: String,
    quantity: i64,
    root: AggregateRoot,
}

/// Works on SQLite and on PostgreSQL.
#[idempotent_handler(consumer = "inventory.book-reservation", key = "{message_id}")]
async fn book_reservation<DB: Stores<Reservation>>(
    event: Envelope<StockReserved>,
    uow: &mut UnitOfWork<'_, DB>,
) -> Result<(), Error> {
    let mut reservation = Reservation {
        order_id: event.order_id.clone(),
        quantity: event.quantity,
        root: AggregateRoot::new(),
    };
    uow.add(&mut reservation).await
}
// ANCHOR_END: generic

// ANCHOR: versions
#[domain_event(version = 1, name = "delivery.arrived")]
pub struct DeliveryArrivedV1 {
    sku: Sku,
}

#[domain_event(version = 2, name = "delivery.arrived")]
pub struct DeliveryArrived {
    sku: Sku,
    quantity: i64,
}

/// The first release did not say how many came: a delivery was always ten pieces.
#[idempotent_handler(consumer = "inventory.fill-shelf", key = "{message_id}", versions = 1..=1)]
async fn fill_shelf_v1(
    event: Envelope<DeliveryArrivedV1>,
    uow: &mut UnitOfWork<'_, Sqlite>,
) -> Result<(), Error> {
    fill(uow, &event.sku, 10).await
}

#[idempotent_handler(consumer = "inventory.fill-shelf", key = "{message_id}", versions = 2..=2)]
async fn fill_shelf(
    event: Envelope<DeliveryArrived>,
    uow: &mut UnitOfWork<'_, Sqlite>,
) -> Result<(), Error> {
    fill(uow, &event.sku, event.quantity).await
}
// ANCHOR_END: versions

async fn fill(uow: &mut UnitOfWork<'_, Sqlite>, sku: &Sku, pieces: i64) -> Result<(), Error> {
    let mut stock = uow.get::<Stock>(sku).await?;
    stock.available += pieces;
    uow.save(&mut stock).await
}

const TABLES: &str = "
    CREATE TABLE stock (sku TEXT PRIMARY KEY, available INTEGER NOT NULL, version INTEGER NOT NULL);
    CREATE TABLE reservations (order_id TEXT PRIMARY KEY, quantity INTEGER NOT NULL, version INTEGER NOT NULL);
";

#[tokio::test]
async fn each_handler_has_its_effect_once() -> Result<(), Box<dyn std::error::Error>> {
    let file = SqliteFile::with_tables(TABLES).await;
    let outbox = Outbox::new("inventory", file.pool.clone());
    outbox.migrate().await?;
    let lamp = || Sku::from("lamp".to_owned());
    let mut uow = outbox.begin(MessageContext::new()).await?;
    let mut stock = Stock {
        sku: lamp(),
        available: 0,
        root: AggregateRoot::new(),
    };
    uow.add(&mut stock).await?;
    uow.raise(DeliveryArrivedV1 { sku: lamp() })?;
    uow.raise(DeliveryArrived {
        sku: lamp(),
        quantity: 5,
    })?;
    // Raised twice by mistake: two messages, and one key of the consumer.
    for _ in 0..2 {
        uow.raise(OrderPaid {
            order_id: "order-1".to_owned(),
            sku: lamp(),
            quantity: 3,
        })?;
    }
    uow.commit().await?;

    // ANCHOR: app_state
    let app = App::new(outbox)
        .broker(InProcessBroker::new())
        .state(Limits { per_order: 10 });
    // ANCHOR_END: app_state
    let running = app.start().await?;
    let all_handled = async {
        // Two deliveries, one order and its repetition, one reservation.
        while running.counts().consumers.handled < 4 || running.counts().consumers.duplicates < 1 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), all_handled).await?;
    running.shutdown().await?;

    let available: i64 = sqlx::query_scalar("SELECT available FROM stock")
        .fetch_one(&file.pool)
        .await?;
    assert_eq!(available, 12);
    let booked: Vec<(String, i64)> = sqlx::query_as("SELECT order_id, quantity FROM reservations")
        .fetch_all(&file.pool)
        .await?;
    assert_eq!(booked, [("order-1".to_owned(), 3)]);
    Ok(())
}

#[test]
fn failures_are_told_apart() {
    let over = ReserveError::OverLimit {
        quantity: 11,
        limit: 10,
    };
    assert_eq!(over.failure_kind(), FailureKind::Permanent);
    let few = ReserveError::TooFew(TooFew { available: 1 });
    assert_eq!(few.failure_kind(), FailureKind::Transient);
}
