use outbox_runtime::prelude::*;

pub struct Money {
    cents: i64,
}

#[aggregate]
pub struct Product {
    id: i64,
    #[aggregate(json)]
    price: Money,
    root: AggregateRoot,
}

fn main() {}
