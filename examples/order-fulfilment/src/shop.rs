use outbox_runtime::prelude::*;

use crate::inventory::Stock;
use crate::ordering::Order;
use crate::payment::Account;

/// A database that stores all aggregates of the shop.
///
/// The handlers are generic over it, so that one text serves SQLite and PostgreSQL.
pub trait ShopDb: Stores<Order> + Stores<Stock> + Stores<Account> {}

impl<DB: Stores<Order> + Stores<Stock> + Stores<Account>> ShopDb for DB {}

/// What a customer and a shelf start with: the handlers' state.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Pieces on a shelf when its SKU is ordered for the first time.
    pub opening_stock: i64,
    /// Credit of a customer who orders for the first time.
    pub credit_cents: i64,
}

/// So that the sample has orders that fail for want of stock, of credit, and of both.
impl Default for Limits {
    fn default() -> Self {
        Self {
            opening_stock: 70,
            credit_cents: 400_000,
        }
    }
}
