use outbox_runtime::prelude::*;

#[domain_event(version = 1, key = "{}:{ order_id }:{order_id:>8}")]
pub struct OrderPaid {
    pub order_id: String,
}

fn main() {}
