use outbox_runtime::prelude::*;

pub struct Money {
    cents: i64,
}

#[aggregate]
pub struct Product {
    id: i64,
    price: Money,
    root: AggregateRoot,
}

fn stores<DB: Stores<Product>>() {}

fn main() {
    stores::<sqlx::Sqlite>();
}
