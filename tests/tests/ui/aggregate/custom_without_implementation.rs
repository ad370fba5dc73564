use outbox_runtime::prelude::*;

#[aggregate(persistence = custom)]
pub struct Order {
    id: i64,
    root: AggregateRoot,
}

fn stores<DB: Stores<Order>>() {}

fn main() {
    stores::<sqlx::Sqlite>();
}
