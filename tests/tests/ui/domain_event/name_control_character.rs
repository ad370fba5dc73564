use outbox_runtime::prelude::*;

#[domain_event(version = 1, name = "order\tpaid")]
pub struct OrderPaid;

fn main() {}
