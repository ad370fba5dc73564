use outbox_runtime::prelude::*;

#[domain_event(version = 1, key = "{order_id:paid")]
pub struct Unclosed {
    pub order_id: String,
}

#[domain_event(version = 1, key = "order_id}:paid")]
pub struct Unopened {
    pub order_id: String,
}

fn main() {}
