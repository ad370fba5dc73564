//! What the integration tests share: a fresh database for each test, and what counts.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing
)]

pub mod bank;
#[cfg(feature = "brokers")]
pub mod brokers;
mod database;
#[cfg(all(feature = "sqlite", feature = "postgres"))]
pub mod faults;
mod foreign_writer;
mod message;
mod partitioned_broker;
#[cfg(feature = "postgres")]
mod postgres;
mod postman;
mod recording_publisher;
#[cfg(feature = "postgres")]
mod round_trips;
mod running_relay;
#[cfg(feature = "sqlite")]
mod sqlite;

pub use database::{Fixture, TestDatabase};
pub use foreign_writer::insert_events;
pub use message::message;
pub use partitioned_broker::PartitionedBroker;
#[cfg(feature = "postgres")]
pub use postgres::postgres;
pub use postman::{Answer, Postman};
pub use recording_publisher::RecordingPublisher;
#[cfg(feature = "postgres")]
pub use round_trips::RoundTrips;
pub use running_relay::{RunningRelay, quick};
#[cfg(feature = "sqlite")]
pub use sqlite::sqlite;

/// Runs each generic test `async fn name<DB: TestDatabase>(fixture: Fixture<DB>)` on both databases.
#[macro_export]
macro_rules! on_both_databases {
    ($($name:ident),+ $(,)?) => {
        mod on_sqlite {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $name() {
                super::$name($crate::sqlite().await).await;
            })+
        }

        mod on_postgres {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $name() {
                if let Some(fixture) = $crate::postgres().await {
                    super::$name(fixture).await;
                }
            })+
        }
    };
}
