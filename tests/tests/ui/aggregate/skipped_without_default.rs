use outbox_runtime::prelude::*;

pub struct Cache;

#[aggregate]
pub struct Order {
    id: i64,
    #[aggregate(skip)]
    cache: Cache,
    root: AggregateRoot,
}

fn main() {}
