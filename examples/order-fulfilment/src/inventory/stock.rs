use outbox_runtime::prelude::*;

use super::events::{StockRejected, StockReleased, StockReserved};
use crate::{OrderId, Sku};

/// The shelf of one article.
#[aggregate(
    table = "inventory_stock",
    events(StockReserved, StockRejected, StockReleased)
)]
#[derive(Debug)]
pub struct Stock {
    #[aggregate(id)]
    sku: Sku,
    opening: i64,
    on_hand: i64,
    root: AggregateRoot,
}

impl Stock {
    /// A shelf as it is first filled.
    pub fn open(sku: Sku, opening: i64) -> Self {
        Self {
            sku,
            opening,
            on_hand: opening,
            root: AggregateRoot::new(),
        }
    }

    /// Lays pieces aside for an order, all or none.
    pub fn reserve(&mut self, order_id: OrderId, quantity: i64) {
        let sku = self.sku.clone();
        if quantity > self.on_hand {
            return self.raise(StockRejected {
                order_id,
                sku,
                quantity,
                on_hand: self.on_hand,
            });
        }
        self.on_hand -= quantity;
        self.raise(StockReserved {
            order_id,
            sku,
            quantity,
        });
    }

    /// Puts an order's pieces back.
    pub fn release(&mut self, order_id: OrderId, quantity: i64) {
        self.on_hand += quantity;
        self.raise(StockReleased {
            order_id,
            sku: self.sku.clone(),
            quantity,
        });
    }

    /// The pieces that can still be reserved.
    pub fn on_hand(&self) -> i64 {
        self.on_hand
    }

    /// The pieces that the shelf was filled with.
    pub fn opening(&self) -> i64 {
        self.opening
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(text: &str) -> OrderId {
        text.to_owned().into()
    }

    #[test]
    fn reserves_all_or_none() {
        let mut stock = Stock::open("s".to_owned().into(), 5);
        stock.reserve(id("o1"), 5);
        stock.reserve(id("o2"), 1);
        assert_eq!((stock.on_hand(), stock.opening()), (0, 5));
        assert_eq!(stock.root.pending_of::<StockReserved>().count(), 1);
        assert_eq!(stock.root.pending_of::<StockRejected>().count(), 1);
    }

    #[test]
    fn a_release_undoes_a_reservation() {
        let mut stock = Stock::open("s".to_owned().into(), 5);
        stock.reserve(id("o1"), 3);
        stock.release(id("o1"), 3);
        assert_eq!(stock.on_hand(), stock.opening());
    }
}
