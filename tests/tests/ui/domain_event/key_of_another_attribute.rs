use outbox_runtime::prelude::*;

#[domain_event(version = 1, table = "orders")]
pub struct OrderPaid;

fn main() {}
