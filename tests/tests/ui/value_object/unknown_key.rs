use outbox_runtime::prelude::*;

#[value_object(prefix = "price_")]
pub struct Money {
    cents: i64,
}

#[value_object(crat = "::outbox_runtime")]
pub struct Weight {
    grams: i64,
}

fn main() {}
