use outbox_runtime::prelude::*;

#[aggregate]
pub struct ByType {
    id: i64,
    root: AggregateRoot,
    second: AggregateRoot,
}

#[aggregate]
pub struct Marked {
    id: i64,
    #[aggregate(root)]
    root: AggregateRoot,
    #[aggregate(root)]
    second: AggregateRoot,
}

fn main() {}
