use outbox_runtime::prelude::*;

#[value_object]
pub struct Nothing {}

fn main() {}
