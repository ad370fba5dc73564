use outbox_runtime::prelude::*;

#[domain_event(version = 1, name = "")]
pub struct OrderPaid;

fn main() {}
