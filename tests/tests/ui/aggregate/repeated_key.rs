use outbox_runtime::prelude::*;

#[aggregate(table = "orders", table = "old_orders")]
pub struct Order {
    id: i64,
    root: AggregateRoot,
}

fn main() {}
