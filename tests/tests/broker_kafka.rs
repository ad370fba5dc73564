//! The suite of brokers against Kafka, and what only that has.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    unreachable_pub
)]

mod broker_support;

#[path = "broker_kafka/faults.rs"]
mod faults;
#[path = "broker_kafka/groups.rs"]
mod groups;
#[path = "broker_kafka/plain.rs"]
mod plain;
#[path = "broker_kafka/records.rs"]
mod records;

outbox_tests::broker_suite!(outbox_tests::brokers::Kafka);
broker_support::handling_suite!(outbox_tests::brokers::Kafka);
