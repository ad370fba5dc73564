use outbox_runtime::prelude::*;

#[aggregate]
pub struct Document {
    id: i64,
    version: String,
    root: AggregateRoot,
}

fn main() {}
