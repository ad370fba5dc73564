//! The inbox: every message has its effect once, however often it is delivered.

mod batch;
mod conflicts;
mod consumer;
mod counters;
mod crew;
mod dispatch;
mod failure;
mod handlers;
mod intake;
mod lanes;
mod options;
mod parking;
mod partitions;
mod places;
mod spare;
mod transact;
mod turns;

pub(crate) use consumer::SUBSCRIPTION;
pub use consumer::{Consumer, ConsumerError};
pub use counters::ConsumerCounts;
pub(crate) use handlers::{Handlers, Selection};
pub use options::{ConsumerOptions, OnUnhandled, OnUnreadable};
