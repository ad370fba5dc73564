use outbox_runtime::prelude::*;

#[domain_event(verison = 1)]
pub struct Mistyped;

#[domain_event(version = 1, topic = "orders")]
pub struct Invented;

fn main() {}
