use outbox_runtime::prelude::*;

#[domain_event(version 1, "name", name: "order.paid")]
pub struct OrderPaid;

fn main() {}
