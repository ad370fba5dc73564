use outbox_runtime::prelude::*;

#[aggregate]
pub struct Order {
    id: i64,
    total: i64,
    #[aggregate(column = "Total")]
    total_cents: i64,
    root: AggregateRoot,
}

fn main() {}
