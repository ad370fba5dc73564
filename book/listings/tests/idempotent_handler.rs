//! Listings of the chapter on `#[idempotent_handler]`.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use book_listings::SqliteFile;
use outbox_runtime::Error;
use outbox_runtime::prelude::*;
use sqlx::Sqlite;

typed_id! { pub struct Sku(String); }

#[domain_event(version = 1)]
pub struct OrderPaidV1 {
    pub order_id: String,
}

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
/// One text for SQLite and PostgreSQL.
#[idempotent_handler(consumer = "inventory.count-reservations", key = "{message_id}")]
async fn count_reservations<DB: Stores<Stock>>(
    _event: Envelope<StockReserved>,
    _uow: &mut UnitOfWork<'_, DB>,
    State(seen): State<Arc<AtomicU32>>,
) -> Result<(), Error> {
    // For the test alone: what is not in the database is not rolled back with it.
    seen.fetch_add(1, Ordering::Relaxed);
    Ok(())
}
// ANCHOR_END: generic
