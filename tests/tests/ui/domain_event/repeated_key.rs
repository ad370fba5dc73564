use outbox_runtime::prelude::*;

#[domain_event(version = 1, name = "a", version = 2)]
pub struct OrderPaid;

fn main() {}
