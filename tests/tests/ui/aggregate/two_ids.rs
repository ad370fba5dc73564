use outbox_runtime::prelude::*;

#[aggregate]
pub struct Order {
    #[aggregate(id)]
    number: i64,
    #[aggregate(id)]
    code: String,
    root: AggregateRoot,
}

fn main() {}
