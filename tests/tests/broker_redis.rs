//! The suite of brokers against Redis, and what only that has.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing
)]

#[path = "broker_redis/consuming.rs"]
mod consuming;
#[path = "broker_redis/operating.rs"]
mod operating;
#[path = "broker_redis/publishing.rs"]
mod publishing_to_redis;
#[path = "broker_redis/support.rs"]
mod support;

mod broker_support;

outbox_tests::broker_suite!(outbox_tests::brokers::Redis);
broker_support::handling_suite!(outbox_tests::brokers::Redis);
