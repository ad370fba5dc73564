use outbox_runtime::prelude::*;

#[aggregate(persistence = custom, table = "orders")]
pub struct Order {
    id: i64,
    #[aggregate(json)]
    lines: Vec<String>,
    root: AggregateRoot,
}

fn main() {}
