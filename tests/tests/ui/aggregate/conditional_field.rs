use outbox_runtime::prelude::*;

#[aggregate]
pub struct Order {
    id: i64,
    #[cfg(unix)]
    owner: i64,
    root: AggregateRoot,
}

fn main() {}
