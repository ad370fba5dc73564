use outbox_runtime::prelude::*;

#[domain_event]
pub struct OrderPaid;

#[domain_event(name = "order.shipped")]
pub enum OrderShipped {
    Once,
}

fn main() {}
