use outbox_runtime::prelude::*;

#[domain_event(version = 1, crate = "not a path")]
pub struct OrderPaid;

fn main() {}
