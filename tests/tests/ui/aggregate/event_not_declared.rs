use outbox_runtime::prelude::*;

#[domain_event(version = 1)]
pub struct OrderPlaced;

#[domain_event(version = 1)]
pub struct OrderPaid;

#[aggregate(events(OrderPlaced))]
pub struct Order {
    id: i64,
    root: AggregateRoot,
}

impl Order {
    pub fn pay(&mut self) {
        self.raise(OrderPaid);
    }
}

fn main() {}
