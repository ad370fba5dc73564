use outbox_runtime::prelude::*;

#[aggregate]
pub struct Order {
    #[aggregate]
    id: i64,
    #[aggregate()]
    total_cents: i64,
    #[aggregate = "total"]
    total: i64,
    root: AggregateRoot,
}

fn main() {}
