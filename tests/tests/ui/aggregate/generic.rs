use outbox_runtime::prelude::*;

#[aggregate]
pub struct Order<T> {
    id: T,
    root: AggregateRoot,
}

fn main() {}
