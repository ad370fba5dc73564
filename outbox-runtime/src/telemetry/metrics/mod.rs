//! The metrics that a service emits, through the facade crate [`metrics`](https://docs.rs/metrics).
//!
//! They need the cargo feature `metrics` of this crate and a recorder of your choice, such as
//! `metrics-exporter-prometheus`. Without the feature every call is empty and the database is asked
//! nothing; without a recorder the facade drops what it is given.
//!
//! # Whose clock
//!
//! An event's `occurred_at` is read from the database's clock, and the delay until it is published
//! ends by the clock of the relay's machine. The delay until it is handled begins by the clock of
//! whoever said when the message was published (see
//! [`Delivery::published_at`](crate::broker::Delivery::published_at)) and ends by that of the
//! consumer's machine. So both hold the difference of two clocks; a negative one counts as 0. Ages
//! that are sampled are the database's own. Durations are measured by one machine's monotonic clock.
//!
//! # Labels
//!
//! There are only such labels as have few values: names of services, consumers and of events that a
//! handler of this program takes, and fixed words. No id and no text of an error is one, nor is the
//! type of an event that arrives and that no handler takes.
//!
//! # What is sampled
//!
//! Metrics that say "sampled" come from the database. What is parked is counted by an
//! [`App`](crate::app::App) every 15 s (see `App::metrics_interval`), up to 10,000 rows of each
//! table. The other ones come with each relay's look at its backlog
//! ([`RelayOptions::backlog_interval`](crate::relay::RelayOptions::backlog_interval)). Each
//! instance samples the same database, so take the maximum over instances and not the sum.
//!
//! # The table
//!
#![doc = include_str!("metrics.md")]

mod inbox;
#[cfg(feature = "metrics")]
mod parked;
mod recorder;
mod relay;
mod table;
mod work;

pub use recorder::describe;
pub use table::{Kind, METRICS, Metric, Unit};

pub(crate) use recorder::{Metrics, Timer};
pub(crate) use relay::LeaseChange;
