use outbox_runtime::prelude::*;

#[aggregate(tabel = "orders")]
pub struct Order {
    id: i64,
    root: AggregateRoot,
}

fn main() {}
