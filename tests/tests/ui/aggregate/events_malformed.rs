use outbox_runtime::prelude::*;

#[aggregate(events = OrderPaid)]
pub struct Assigned {
    id: i64,
    root: AggregateRoot,
}

#[aggregate(events("OrderPaid", &OrderPaid))]
pub struct Quoted {
    id: i64,
    root: AggregateRoot,
}

fn main() {}
