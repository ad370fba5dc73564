use outbox_runtime::prelude::*;

#[aggregate]
pub struct Product {
    id: i64,
    #[aggregate(prefix = "price_")]
    price: i64,
    root: AggregateRoot,
}

fn main() {}
