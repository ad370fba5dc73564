use outbox_runtime::prelude::*;

#[domain_event(version = 1)]
pub struct OrderPaid {
    pub order_id: i64,
}

#[idempotent_handler(key = "{message_id}")]
pub struct Ship;

#[idempotent_handler(key = "{message_id}")]
const SHIP: i64 = 1;

fn main() {}
