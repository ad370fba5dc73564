use outbox_runtime::prelude::*;

#[value_object]
pub struct Range<T> {
    from: T,
    to: T,
}

fn main() {}
