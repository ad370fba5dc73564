use outbox_runtime::prelude::*;

#[aggregate]
pub enum Order {
    Placed { id: i64, root: AggregateRoot },
}

fn main() {}
