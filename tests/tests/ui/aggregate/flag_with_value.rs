use outbox_runtime::prelude::*;

#[aggregate]
pub struct Order {
    #[aggregate(id = true)]
    number: i64,
    root: AggregateRoot,
}

fn main() {}
