use outbox_runtime::prelude::*;

#[aggregate(id, json)]
pub struct Order {
    #[aggregate(table = "orders")]
    id: i64,
    root: AggregateRoot,
}

fn main() {}
