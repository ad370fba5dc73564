use std::num::NonZeroU16;
use std::sync::Arc;
use std::time::Duration;

use outbox_runtime::broker::{Broker, BrokerOptions, ConfigError, Topics, open};

/// The longest message that the workers' brokers take, where the adapter can be told: about as much
/// as NATS and Kafka take by themselves.
#[cfg(any(feature = "rabbitmq", feature = "redis"))]
const LONGEST: usize = 1_000_000;
/// More than there are workers, so that each has something to read.
const PARTITIONS: u16 = 6;

/// The broker at that URL as a worker uses it. Kafka waits for a member that was killed until its
/// session is over, unless it knows it by name and it comes back.
///
/// # Errors
/// [`ConfigError`] for a URL or a namespace that can't be used.
pub fn open_broker(
    url: &str,
    namespace: &str,
    member: Option<&str>,
    confirm_within: Duration,
) -> Result<Arc<dyn Broker>, ConfigError> {
    let options = BrokerOptions::new()
        .topics(Topics::new(namespace)?)
        .partitions(NonZeroU16::new(PARTITIONS).expect("more than none"))
        .confirm_within(confirm_within);
    match url.split("://").next() {
        #[cfg(feature = "kafka")]
        Some("kafka") => {
            let broker = outbox_runtime::broker::KafkaBroker::new(url, options)?;
            Ok(Arc::new(match member {
                Some(member) => broker.set("group.instance.id", member)?,
                None => broker,
            }))
        }
        #[cfg(feature = "rabbitmq")]
        Some("amqp") => {
            let broker = outbox_runtime::broker::RabbitMqBroker::new(url, options)?;
            Ok(Arc::new(broker.max_message_bytes(LONGEST)))
        }
        #[cfg(feature = "redis")]
        Some("redis") => {
            let broker = outbox_runtime::broker::RedisBroker::new(url, options)?;
            Ok(Arc::new(broker.max_message_bytes(LONGEST)))
        }
        _ => {
            let _is_for_kafka = member;
            open(url, options)
        }
    }
}
