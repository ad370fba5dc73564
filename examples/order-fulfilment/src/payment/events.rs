use outbox_runtime::prelude::*;

use crate::{CustomerId, OrderId};

/// The order is paid. The key lets an order be paid only once, ever.
#[domain_event(version = 1, key = "{order_id}:PaymentCaptured:v1")]
#[derive(Debug, Clone, PartialEq)]
pub struct PaymentCaptured {
    pub order_id: OrderId,
    pub customer_id: CustomerId,
    pub amount_cents: i64,
}

/// The customer's credit does not suffice.
#[domain_event(version = 1)]
#[derive(Debug, Clone, PartialEq)]
pub struct PaymentDeclined {
    pub order_id: OrderId,
    pub customer_id: CustomerId,
    pub amount_cents: i64,
}

/// The order was cancelled and the customer has the money back.
#[domain_event(version = 1, key = "{order_id}:PaymentRefunded:v1")]
#[derive(Debug, Clone, PartialEq)]
pub struct PaymentRefunded {
    pub order_id: OrderId,
    pub customer_id: CustomerId,
    pub amount_cents: i64,
}
