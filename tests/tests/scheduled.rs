//! What scheduled events promise, on both databases.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing
)]

#[path = "scheduled/costs.rs"]
mod costs;
#[path = "scheduled/due.rs"]
mod due;
#[path = "scheduled/keys.rs"]
mod keys;
#[path = "scheduled/races.rs"]
mod races;
