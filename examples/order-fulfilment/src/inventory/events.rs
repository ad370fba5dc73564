use outbox_runtime::prelude::*;

use crate::{OrderId, Sku};

/// The pieces lie aside for the order. The key lets an order have goods only once, ever.
#[domain_event(version = 1, key = "{order_id}:StockReserved:v1")]
#[derive(Debug, Clone, PartialEq)]
pub struct StockReserved {
    pub order_id: OrderId,
    pub sku: Sku,
    pub quantity: i64,
}

/// There are not enough pieces on the shelf.
#[domain_event(version = 1)]
#[derive(Debug, Clone, PartialEq)]
pub struct StockRejected {
    pub order_id: OrderId,
    pub sku: Sku,
    pub quantity: i64,
    pub on_hand: i64,
}

/// The order was cancelled and its pieces are back on the shelf.
#[domain_event(version = 1, key = "{order_id}:StockReleased:v1")]
#[derive(Debug, Clone, PartialEq)]
pub struct StockReleased {
    pub order_id: OrderId,
    pub sku: Sku,
    pub quantity: i64,
}
