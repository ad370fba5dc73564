use outbox_runtime::prelude::*;

#[domain_event(version = 1, key = "{ordre_id}:paid")]
pub struct OrderPaid {
    pub order_id: String,
    pub amount_cents: i64,
}

#[domain_event(version = 1, key = "{order_id}")]
pub struct Nothing;

fn main() {}
