use outbox_runtime::prelude::*;

pub struct Order;

#[aggregate]
impl Order {}

#[aggregate]
mod orders {}

fn main() {}
