use std::sync::Arc;

use super::Broker;
use super::error::ConfigError;
use super::options::BrokerOptions;

/// The broker at a URL: `nats://`, `tls://` (NATS), `kafka://`, `kafkas://`, `amqp://`, `amqps://`
/// (RabbitMQ), `redis://` or `rediss://`.
///
/// Nothing is connected yet, so a service starts while its broker is down. What only one broker
/// has, its own type sets, such as [`NatsBroker`](super::NatsBroker).
///
/// ```
/// use outbox_runtime::broker::{BrokerOptions, open};
///
/// # #[cfg(feature = "nats")]
/// let broker = open("nats://127.0.0.1:4222", BrokerOptions::new())?;
/// # Ok::<(), outbox_runtime::broker::ConfigError>(())
/// ```
///
/// # Errors
/// [`ConfigError`] when the URL can't be understood, or its broker's feature is not switched on.
pub fn open(url: &str, options: BrokerOptions) -> Result<Arc<dyn Broker>, ConfigError> {
    let scheme = url.split_once("://").map_or("", |(scheme, _)| scheme);
    match scheme {
        #[cfg(feature = "nats")]
        "nats" | "tls" => Ok(Arc::new(super::NatsBroker::new(url, options)?)),
        #[cfg(feature = "kafka")]
        "kafka" | "kafkas" => Ok(Arc::new(super::KafkaBroker::new(url, options)?)),
        #[cfg(feature = "rabbitmq")]
        "amqp" | "amqps" => Ok(Arc::new(super::RabbitMqBroker::new(url, options)?)),
        #[cfg(feature = "redis")]
        "redis" | "rediss" => Ok(Arc::new(super::RedisBroker::new(url, options)?)),
        _ => Err(refused(scheme, &options)),
    }
}

fn refused(scheme: &str, _unused: &BrokerOptions) -> ConfigError {
    let feature = match scheme {
        "nats" | "tls" => "nats",
        "kafka" | "kafkas" => "kafka",
        "amqp" | "amqps" => "rabbitmq",
        "redis" | "rediss" => "redis",
        _ => {
            return ConfigError::new(
                "the broker's URL begins with none of nats://, tls://, kafka://, kafkas://, amqp://, \
                 amqps://, redis:// and rediss://",
            );
        }
    };
    ConfigError::new(format!(
        "{scheme}:// needs the feature `{feature}` of outbox-runtime; switch it on in Cargo.toml"
    ))
}
