//! What operators see of parked messages and do with them, on both databases.
#![allow(
    missing_docs,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    unreachable_pub
)]

mod consumer_support;

#[path = "dead_letters/consumers.rs"]
mod consumers;
#[path = "dead_letters/kills.rs"]
mod kills;
#[path = "dead_letters/operators.rs"]
mod operators;
#[path = "dead_letters/plans.rs"]
mod plans;
#[path = "dead_letters/reading.rs"]
mod reading;
#[path = "dead_letters/relays.rs"]
mod relays;
#[path = "dead_letters/retention.rs"]
mod retention;
#[path = "dead_letters/stock.rs"]
mod stock;
