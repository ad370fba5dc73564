use outbox_runtime::prelude::*;

#[aggregate(table, type_name = 7, persistence = sql)]
pub struct Order {
    id: i64,
    #[aggregate(column)]
    total_cents: i64,
    root: AggregateRoot,
}

fn main() {}
