//! The suite of brokers against NATS JetStream, and what only that has.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic)]

#[path = "broker_nats/consuming.rs"]
mod consuming;
#[path = "broker_nats/publishing.rs"]
mod publishing_to_nats;

mod broker_support;

outbox_tests::broker_suite!(outbox_tests::brokers::Nats);
broker_support::handling_suite!(outbox_tests::brokers::Nats);
