use outbox_runtime::prelude::*;

#[aggregate]
pub struct Order {
    #[aggregate(id, json)]
    number: Vec<String>,
    #[aggregate(root, skip)]
    root: AggregateRoot,
}

fn main() {}
