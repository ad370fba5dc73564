//! A crate whose check is measured. A line that holds NN stands here once for each aggregate.

use outbox_runtime::prelude::*;
use serde::{Deserialize, Serialize};

pub mod parcelNN;

typed_id! {
    pub struct CustomerId(String);
    pub struct CarrierId(i64);
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Address {
    pub street: String,
    pub city: String,
    pub country: String,
}

#[derive(Debug, Clone)]
pub struct Limits {
    pub grams: i64,
}
