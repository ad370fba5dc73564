use outbox_runtime::prelude::*;

#[domain_event(version = 1, name = "order.placed")]
pub struct Old;

#[domain_event(version = 1, name = "order.placed", upcast_from = Old)]
pub struct OrderPlaced;

fn main() {}
