use outbox_runtime::prelude::*;

#[aggregate]
pub struct Order {
    id: i64,
    #[aggregate(skip, column = "cached")]
    cache: String,
    root: AggregateRoot,
}

fn main() {}
