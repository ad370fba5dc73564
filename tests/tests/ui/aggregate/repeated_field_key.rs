use outbox_runtime::prelude::*;

#[aggregate]
pub struct Order {
    id: i64,
    #[aggregate(json)]
    #[aggregate(json)]
    lines: Vec<String>,
    #[aggregate(column = "a", column = "b")]
    total_cents: i64,
    root: AggregateRoot,
}

fn main() {}
