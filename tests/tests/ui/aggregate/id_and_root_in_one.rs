use outbox_runtime::prelude::*;

#[aggregate]
pub struct Order {
    #[aggregate(id, root)]
    root: AggregateRoot,
}

fn main() {}
