//! The suite of brokers against RabbitMQ, and what only that has.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing
)]

#[path = "broker_rabbitmq/publishing.rs"]
mod publishing_to_rabbitmq;
#[path = "broker_rabbitmq/queues.rs"]
mod queues;
#[path = "broker_rabbitmq/reading.rs"]
mod reading;

mod broker_support;

use lapin::{Channel, Connection, ConnectionProperties};
use outbox_runtime::Message;
use outbox_runtime::broker::{
    Deliveries, Delivery, Publisher, RabbitMqBroker, Subscriber, Subscription,
};
use outbox_tests::brokers::RabbitMq;
use outbox_tests::brokers::suite::Ground;

outbox_tests::broker_suite!(outbox_tests::brokers::RabbitMq);
broker_support::handling_suite!(outbox_tests::brokers::RabbitMq);

type Reading = Box<dyn Deliveries>;

fn rabbit(ground: &Ground<RabbitMq>) -> RabbitMqBroker {
    RabbitMqBroker::new(&ground.url, ground.options()).unwrap()
}

fn exchange(ground: &Ground<RabbitMq>) -> String {
    format!("{}.events", ground.topics.namespace())
}

/// A reader of all partitions.
async fn read_all(broker: &RabbitMqBroker, event_types: &[&str]) -> Reading {
    let subscription = Subscription::new("group", event_types.iter().copied());
    broker.subscribe(subscription).await.unwrap()
}

/// Publishes all of them. What a call had no time for goes with the next one, as with a relay.
async fn publish(broker: &RabbitMqBroker, messages: &[Message]) {
    let mut left = messages.to_vec();
    while !left.is_empty() {
        let mut results = broker.publish(&left).await.into_iter();
        left.retain(|_| match results.next().unwrap() {
            Ok(()) => false,
            Err(error) => {
                assert!(error.is_withheld(), "{error}");
                true
            }
        });
    }
}

fn sequence(delivery: &Delivery) -> i64 {
    delivery
        .message
        .metadata
        .aggregate
        .as_ref()
        .unwrap()
        .sequence
}

/// A channel of a client that is not ours.
async fn channel(ground: &Ground<RabbitMq>) -> (Connection, Channel) {
    let connection = Connection::connect(&ground.url, ConnectionProperties::default());
    let connection = connection.await.unwrap();
    let channel = connection.create_channel().await.unwrap();
    (connection, channel)
}
