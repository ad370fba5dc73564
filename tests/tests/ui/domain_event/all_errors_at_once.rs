use outbox_runtime::prelude::*;

#[domain_event(version = 0, name = "", key = "{ordre_id}:{}", vresion = 1)]
pub struct OrderPaid<T> {
    pub order_id: T,
}

fn main() {}
