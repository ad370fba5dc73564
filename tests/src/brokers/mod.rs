//! Real brokers for tests: each kind's kit, and one suite that all of them pass.

#[cfg(feature = "kafka")]
mod kafka;
mod kit;
#[cfg(feature = "nats")]
mod nats;
#[cfg(feature = "rabbitmq")]
mod rabbitmq;
#[cfg(feature = "redis")]
mod redis;
pub mod suite;

#[cfg(feature = "kafka")]
pub use kafka::Kafka;
pub use kit::{PlainMessage, Tap, TestBroker};
#[cfg(feature = "nats")]
pub use nats::Nats;
#[cfg(feature = "rabbitmq")]
pub use rabbitmq::RabbitMq;
#[cfg(feature = "redis")]
pub use redis::Redis;
