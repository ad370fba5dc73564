//! The suite of brokers against RabbitMQ, and what only that has.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing
)]

outbox_tests::broker_suite!(outbox_tests::brokers::RabbitMq);
