use outbox_runtime::prelude::*;

pub struct OrderPlacedV1;

#[domain_event(version = 2, upcast_from = OrderPlacedV1)]
pub struct OrderPlaced;

impl From<OrderPlacedV1> for OrderPlaced {
    fn from(_: OrderPlacedV1) -> Self {
        Self
    }
}

fn main() {}
