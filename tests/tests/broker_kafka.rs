//! The suite of brokers against Kafka, and what only that has.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing
)]

mod broker_support;

outbox_tests::broker_suite!(outbox_tests::brokers::Kafka);
broker_support::handling_suite!(outbox_tests::brokers::Kafka);
