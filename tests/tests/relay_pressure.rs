//! How the relay behaves when there is more than it, or the broker, can take.
#![allow(
    missing_docs,
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing
)]

#[path = "relay_pressure/backlog.rs"]
mod backlog;
#[path = "relay_pressure/bytes.rs"]
mod bytes;
#[path = "relay_pressure/circuit.rs"]
mod circuit;
#[path = "relay_pressure/parked.rs"]
mod parked;
#[path = "relay_pressure/rate.rs"]
mod rate;
