use outbox_runtime::prelude::*;

use crate::inventory::StockReleased;
use crate::ordering::OrderConfirmed;
use crate::payment::PaymentRefunded;

/// One of the three, for a program that runs them apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BoundedContext {
    Ordering,
    Inventory,
    Payment,
}

impl BoundedContext {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Ordering, Self::Inventory, Self::Payment];

    /// Events that tell the world how things ended, and that no context acts on.
    pub const NOBODY_HANDLES: [&'static str; 3] = [
        OrderConfirmed::NAME,
        StockReleased::NAME,
        PaymentRefunded::NAME,
    ];

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ordering => "ordering",
            Self::Inventory => "inventory",
            Self::Payment => "payment",
        }
    }

    /// Whether a consumer is one of its handlers: their names begin with the context's.
    pub fn has_consumer(self, consumer: &str) -> bool {
        consumer
            .strip_prefix(self.name())
            .is_some_and(|rest| rest.starts_with('.'))
    }

    /// Makes its own table on PostgreSQL, where it is missing.
    pub const fn postgres_tables(self) -> &'static str {
        match self {
            Self::Ordering => include_str!("../sql/postgres/ordering.sql"),
            Self::Inventory => include_str!("../sql/postgres/inventory.sql"),
            Self::Payment => include_str!("../sql/postgres/payment.sql"),
        }
    }

    /// Makes its own table on SQLite, where it is missing.
    pub const fn sqlite_tables(self) -> &'static str {
        match self {
            Self::Ordering => include_str!("../sql/sqlite/ordering.sql"),
            Self::Inventory => include_str!("../sql/sqlite/inventory.sql"),
            Self::Payment => include_str!("../sql/sqlite/payment.sql"),
        }
    }
}
