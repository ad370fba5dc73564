use outbox_runtime::prelude::*;

#[aggregate(type_name = "")]
pub struct Order {
    id: i64,
    root: AggregateRoot,
}

fn main() {}
