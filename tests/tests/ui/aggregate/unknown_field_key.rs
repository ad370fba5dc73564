use outbox_runtime::prelude::*;

#[aggregate]
pub struct Order {
    id: i64,
    #[aggregate(jsn)]
    lines: Vec<String>,
    #[aggregate(rename = "total")]
    total_cents: i64,
    root: AggregateRoot,
}

fn main() {}
