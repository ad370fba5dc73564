use outbox_runtime::prelude::*;

// One error alone: the aggregate that embeds it compiles.
#[value_object(crat = "x")]
pub struct Money {
    cents: i64,
}

#[aggregate]
pub struct Product {
    id: i64,
    #[aggregate(embed)]
    price: Money,
    root: AggregateRoot,
}

fn main() {}
