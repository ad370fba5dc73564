use outbox_runtime::prelude::*;

#[domain_event(version = 1, name = "order.placed")]
pub struct OrderPlacedV1;

#[domain_event(version = 2, name = "order.placed", upcast_from = OrderPlacedV1)]
pub struct OrderPlaced;

fn main() {}
