use outbox_runtime::prelude::*;

#[value_object]
pub struct Money {
    cents: i64,
}

#[aggregate]
pub struct Product {
    id: i64,
    #[aggregate(embed)]
    price: Money,
    #[aggregate(embed, prefix = "price_")]
    old_price: Money,
    root: AggregateRoot,
}

fn main() {}
