use outbox_runtime::prelude::*;

#[domain_event(version = 1, serde = "by hand")]
pub struct OrderPaid;

#[domain_event(version = 1, serde = skip)]
pub struct OrderShipped;

fn main() {}
