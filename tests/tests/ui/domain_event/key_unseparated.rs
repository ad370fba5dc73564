use outbox_runtime::prelude::*;

#[domain_event(version = 1, key = "{order_id}-{line}")]
pub struct LineShipped {
    pub order_id: String,
    pub line: i64,
}

fn main() {}
