use outbox_runtime::prelude::*;

#[domain_event(version = 1)]
pub union Either {
    pub left: i64,
    pub right: u64,
}

fn main() {}
