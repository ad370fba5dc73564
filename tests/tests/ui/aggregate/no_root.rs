use outbox_runtime::prelude::*;

#[aggregate]
pub struct Order {
    id: i64,
}

fn main() {}
