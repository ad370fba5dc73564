use outbox_runtime::prelude::*;

#[aggregate]
pub struct Order {
    id: i64,
    #[aggregate(column = "total cents")]
    total_cents: i64,
    #[aggregate(column = "")]
    note: String,
    größe: i64,
    root: AggregateRoot,
}

fn main() {}
