//! Message brokers: what a relay publishes to and a consumer reads from.
//!
//! The ports are [`Publisher`] and [`Subscriber`]; what is both is a [`Broker`]. The contracts stand
//! at the traits: they are what the framework's promises rest on, and they are short.
//!
//! Behind a feature each, adapters for NATS JetStream (`nats`), Kafka (`kafka`), RabbitMQ
//! (`rabbitmq`) and Redis Streams (`redis`) carry messages as [CloudEvents](cloud_events).
//! [`BrokerOptions`] is what they have in common, and [`open`] chooses one by its URL, so that which
//! broker it is stays a matter of configuration.

#[cfg(feature = "cloud-events")]
pub mod cloud_events;
#[cfg(feature = "cloud-events")]
mod decoding;
mod delivery;
mod error;
#[cfg(feature = "cloud-events")]
mod foreign;
mod in_process;
#[cfg(feature = "kafka")]
mod kafka;
mod lanes;
#[cfg(feature = "nats")]
mod nats;
#[cfg(feature = "cloud-events")]
mod open;
#[cfg(feature = "cloud-events")]
mod options;
#[cfg(any(feature = "nats", feature = "rabbitmq", feature = "redis"))]
mod partition;
mod publisher;
#[cfg(feature = "rabbitmq")]
mod rabbitmq;
#[cfg(feature = "cloud-events")]
mod raw;
#[cfg(feature = "redis")]
mod redis;
#[cfg(feature = "cloud-events")]
mod standing_in;
mod subscriber;
#[cfg(feature = "cloud-events")]
mod topics;

#[cfg(feature = "cloud-events")]
pub use cloud_events::ContentMode;
pub use delivery::{Acknowledge, Delivery};
pub use error::{BoxError, BrokerError, ConfigError, PublishError};
#[cfg(feature = "cloud-events")]
pub use foreign::{ForeignEvent, ForeignTopic};
pub use in_process::InProcessBroker;
#[cfg(feature = "kafka")]
pub use kafka::KafkaBroker;
pub use lanes::publish_in_lanes;
#[cfg(feature = "nats")]
pub use nats::NatsBroker;
#[cfg(feature = "cloud-events")]
pub use open::open;
#[cfg(feature = "cloud-events")]
pub use options::BrokerOptions;
pub use publisher::Publisher;
#[cfg(feature = "rabbitmq")]
pub use rabbitmq::{QueueType, RabbitMqBroker, Unroutable};
#[cfg(feature = "cloud-events")]
pub use raw::RawMessage;
#[cfg(feature = "redis")]
pub use redis::RedisBroker;
pub use subscriber::{Deliveries, Sharing, Subscriber, Subscription};
#[cfg(feature = "cloud-events")]
pub use topics::Topics;

/// A broker that both takes and delivers messages.
///
/// Whatever is a [`Publisher`] and a [`Subscriber`] is one; there is nothing to implement.
pub trait Broker: Publisher + Subscriber {}

impl<T: Publisher + Subscriber + ?Sized> Broker for T {}
