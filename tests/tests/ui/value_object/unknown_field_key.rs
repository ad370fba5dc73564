use outbox_runtime::prelude::*;

#[value_object]
pub struct Money {
    #[value_object(colum = "amount")]
    cents: i64,
    #[value_object(embed)]
    rate: i64,
    #[value_object]
    currency: String,
}

fn main() {}
