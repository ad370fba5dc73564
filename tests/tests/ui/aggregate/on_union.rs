use outbox_runtime::prelude::*;

#[aggregate]
pub union Order {
    id: i64,
    number: u64,
}

fn main() {}
