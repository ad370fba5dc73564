use outbox_runtime::prelude::*;

use crate::{CustomerId, OrderId, Sku};

/// An order came in. Inventory and payment react to it, each on its own.
#[domain_event(version = 1, key = "{order_id}:OrderPlaced:v1")]
#[derive(Debug, Clone, PartialEq)]
pub struct OrderPlaced {
    pub order_id: OrderId,
    pub customer_id: CustomerId,
    pub sku: Sku,
    pub quantity: i64,
    pub total_cents: i64,
}

/// The goods are reserved and paid: the order's good end.
#[domain_event(version = 1)]
#[derive(Debug, Clone, PartialEq)]
pub struct OrderConfirmed {
    pub order_id: OrderId,
    pub total_cents: i64,
}

/// Goods or money were missing: the order's other end.
///
/// It says what succeeded all the same and so must be given back.
#[domain_event(version = 1)]
#[derive(Debug, Clone, PartialEq)]
pub struct OrderCancelled {
    pub order_id: OrderId,
    pub customer_id: CustomerId,
    pub sku: Sku,
    pub quantity: i64,
    pub total_cents: i64,
    pub stock_reserved: bool,
    pub payment_captured: bool,
}
