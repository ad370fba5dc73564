use outbox_runtime::prelude::*;

#[domain_event(version = 1, key = "{order_id}:{reason}")]
pub enum OrderClosed {
    Paid { order_id: String },
    Cancelled { order_id: String, reason: String },
}

fn main() {}
