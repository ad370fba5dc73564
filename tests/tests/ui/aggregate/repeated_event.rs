use outbox_runtime::prelude::*;

#[domain_event(version = 1)]
pub struct OrderPaid;

#[aggregate(events(OrderPaid, OrderPaid))]
pub struct Order {
    id: i64,
    root: AggregateRoot,
}

fn main() {}
