use outbox_runtime::prelude::*;

#[derive(serde::Serialize, serde::Deserialize)]
pub struct Address {
    pub city: String,
}

#[domain_event(version = 1, key = "{address.town}")]
pub struct OrderShipped {
    pub address: Address,
}

fn main() {}
