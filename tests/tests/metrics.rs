//! What the metrics count: exactly what happened, under names and labels that the table has.
//!
//! Each test has a recorder of its own, which is its thread's: so all that a test does runs on one.
#![allow(
    missing_docs,
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    unreachable_pub
)]

mod consumer_support;
#[path = "metrics/inbox.rs"]
mod inbox;
#[path = "metrics/recording.rs"]
mod recording;
#[path = "metrics/relay.rs"]
mod relay;
#[path = "metrics/sampled.rs"]
mod sampled;
#[path = "metrics/table.rs"]
mod table;
#[path = "metrics/work.rs"]
mod work;

/// Runs each generic test on both databases, all of it on the test's own thread.
macro_rules! in_one_thread {
    ($($name:ident),+ $(,)?) => {
        mod on_sqlite {
            $(#[tokio::test]
            async fn $name() {
                super::$name(outbox_tests::sqlite().await).await;
            })+
        }

        mod on_postgres {
            $(#[tokio::test]
            async fn $name() {
                if let Some(fixture) = outbox_tests::postgres().await {
                    super::$name(fixture).await;
                }
            })+
        }
    };
}
pub(crate) use in_one_thread;
