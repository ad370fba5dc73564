use outbox_runtime::prelude::*;

#[domain_event(version = 1, key = "order-paid")]
pub struct OrderPaid {
    pub order_id: String,
}

fn main() {}
