use outbox_runtime::prelude::*;

#[value_object]
pub enum Currency {
    Eur,
}

#[value_object]
pub struct Cents(i64);

fn main() {}
