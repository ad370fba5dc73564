use outbox_runtime::prelude::*;

#[domain_event(version = 0)]
pub struct OrderPaid;

fn main() {}
