use outbox_runtime::prelude::*;

pub struct OrderPaid;

#[aggregate(events(OrderPaid))]
pub struct Order {
    id: i64,
    root: AggregateRoot,
}

fn main() {}
