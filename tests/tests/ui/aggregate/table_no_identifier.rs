use outbox_runtime::prelude::*;

#[aggregate(table = "orders; drop table orders")]
pub struct Order {
    id: i64,
    root: AggregateRoot,
}

#[aggregate(table = "server.shop.orders")]
pub struct Deep {
    id: i64,
    root: AggregateRoot,
}

fn main() {}
