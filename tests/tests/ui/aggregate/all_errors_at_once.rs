use outbox_runtime::prelude::*;

#[aggregate(table = "", events(OrderPaid, OrderPaid), tabel = "orders")]
pub struct Order {
    #[aggregate(jsn)]
    number: i64,
    #[aggregate(column = "1st")]
    first: i64,
}

#[domain_event(version = 1)]
pub struct OrderPaid;

fn main() {}
