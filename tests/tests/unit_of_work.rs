//! What a unit of work promises, on both databases.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing
)]

#[path = "unit_of_work/atomicity.rs"]
mod atomicity;
#[cfg(feature = "postgres")]
#[path = "unit_of_work/cancelled.rs"]
mod cancelled;
#[path = "unit_of_work/concurrency.rs"]
mod concurrency;
#[cfg(feature = "sqlite")]
#[path = "unit_of_work/ended.rs"]
mod ended;
#[path = "unit_of_work/envelopes.rs"]
mod envelopes;
#[path = "unit_of_work/large.rs"]
mod large;
#[path = "unit_of_work/persistence.rs"]
mod persistence;
#[path = "unit_of_work/round_trips.rs"]
mod round_trips;
#[path = "unit_of_work/savepoints.rs"]
mod savepoints;
#[path = "unit_of_work/tables.rs"]
mod tables;
