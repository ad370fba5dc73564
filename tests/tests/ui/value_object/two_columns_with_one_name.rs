use outbox_runtime::prelude::*;

#[value_object]
pub struct Money {
    cents: i64,
    #[value_object(column = "cents")]
    amount: i64,
}

fn main() {}
