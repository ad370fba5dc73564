use outbox_runtime::prelude::*;

#[aggregate]
pub struct Order {
    number: i64,
    root: AggregateRoot,
}

fn main() {}
