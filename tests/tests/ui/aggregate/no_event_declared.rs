use outbox_runtime::prelude::*;

#[domain_event(version = 1)]
pub struct OrderPaid;

pub struct OrderShipped;

#[aggregate]
pub struct Order {
    id: i64,
    root: AggregateRoot,
}

impl Order {
    pub fn pay(&mut self) {
        self.raise(OrderPaid);
    }

    pub fn ship(&mut self) {
        self.raise(OrderShipped);
    }
}

fn main() {}
