use outbox_runtime::prelude::*;

#[aggregate]
pub struct Order(i64, AggregateRoot);

#[aggregate]
pub struct Empty;

fn main() {}
