//! Kafka, through librdkafka.

mod assignment;
mod config;
mod consume;
mod context;
mod contiguous;
mod disposal;
mod group;
mod producer;
mod publish;
mod record;
mod subscribe;
mod topology;

use std::fmt;
use std::num::NonZeroU16;
use std::sync::Arc;

use async_trait::async_trait;

use self::config::Config;
use self::producer::Producers;
use self::topology::Topology;
use super::options::BrokerOptions;
use super::{
    BrokerError, ConfigError, Deliveries, PublishError, Publisher, Subscriber, Subscription,
};
use crate::domain::Message;

/// Apache Kafka, and servers that speak its protocol.
///
/// Events travel through one topic for each of [`Topics`](super::Topics), such as `outbox.events`,
/// under the aggregate's id as key. Producers in Java with their default partitioner put a key into
/// the same partition. Consumers form the group `outbox.inventory`, of namespace and service.
///
/// ```
/// use outbox_runtime::broker::{BrokerOptions, KafkaBroker};
///
/// let broker = KafkaBroker::new("kafka://127.0.0.1:9092", BrokerOptions::new())?
///     .set("compression.type", "lz4")?
///     .set("session.timeout.ms", "6000")?;
/// # Ok::<(), outbox_runtime::broker::ConfigError>(())
/// ```
///
/// # URL
/// `kafka://[user:password@]host[:port][,host[:port]...]`, and `kafkas://` for TLS, which needs the
/// feature `kafka-tls`. The port is 9092 unless told. A user signs in by SASL's mechanism `PLAIN`;
/// set `sasl.mechanism` for others, such as `SCRAM-SHA-512`, which need `kafka-tls` too. Parameters
/// such as `?session.timeout.ms=6000` are settings as of [`set`](Self::set).
///
/// # Guarantees
/// - **Publishing.** A message counts as published when all in-sync copies have it (`acks=all`, an
///   idempotent producer). Each key has one message in flight, so a failure is never overtaken. A
///   message that the broker refuses for its size fails permanently and no other one with it: those
///   that shared its request are sent again, each in a request of its own.
/// - **Consuming.** The members of a group share the partitions of its topics, each read by one
///   member at a time. An offset is committed only when all messages before it are acknowledged,
///   within 100 ms of the last acknowledgement and when a partition moves. What is given back, or
///   dropped, is read again with all that is behind it in its partition. A new group begins with the
///   oldest message. Only committed transactions are read.
/// - **Life.** A lost connection is made again without ending the subscription. A topic that is
///   deleted ends it, and the next one makes the topic again.
///
/// # Limits
/// - A message may have 1 MB unless `message.max.bytes` says otherwise; the topic has a limit too.
/// - A killed member's partitions move after `session.timeout.ms`, 10 s unless told.
/// - To add partitions to a topic moves keys to others; let the consumers finish what is published
///   first.
/// - A subscription holds [`prefetch`](BrokerOptions::prefetch) messages that wait and, in
///   librdkafka, up to 16 MB more (`queued.max.messages.kbytes`).
/// - It is tested on Kafka-compatible servers, not against Apache Kafka itself.
#[derive(Clone)]
pub struct KafkaBroker {
    settings: Arc<Settings>,
    shared: Arc<Shared>,
}

#[derive(Clone)]
struct Settings {
    config: Config,
    options: BrokerOptions,
    replication: Option<i32>,
}

/// What all clones use.
#[derive(Default)]
struct Shared {
    producers: Producers,
    topology: Topology,
}

impl KafkaBroker {
    /// The brokers at a URL. Nothing is connected yet.
    ///
    /// # Errors
    /// [`ConfigError`] when the URL can't be understood, or needs a feature that is not switched on.
    pub fn new(url: &str, options: BrokerOptions) -> Result<Self, ConfigError> {
        let settings = Settings {
            config: Config::parse(url, &options)?,
            options,
            replication: None,
        };
        Ok(Self {
            settings: Arc::new(settings),
            shared: Arc::default(),
        })
    }

    /// Sets what librdkafka's
    /// [CONFIGURATION.md](https://github.com/confluentinc/librdkafka/blob/master/CONFIGURATION.md)
    /// knows, by its name there; producers and consumers each take what is theirs.
    ///
    /// # Errors
    /// [`ConfigError`] when there is no such setting, it can't have this value, or what this type
    /// promises rests on it.
    pub fn set(mut self, name: &str, value: &str) -> Result<Self, ConfigError> {
        self.changed().config.set(name, value)?;
        Ok(self)
    }

    /// Sets how many brokers keep a copy of each topic that is made; the broker's own default
    /// (`default.replication.factor`) unless told.
    #[must_use]
    pub fn replication(mut self, copies: NonZeroU16) -> Self {
        self.changed().replication = Some(i32::from(copies.get()));
        self
    }

    /// The settings, which from now on only this one has.
    fn changed(&mut self) -> &mut Settings {
        self.shared = Arc::default();
        Arc::make_mut(&mut self.settings)
    }
}

#[async_trait]
impl Publisher for KafkaBroker {
    async fn publish(&self, messages: &[Message]) -> Vec<Result<(), PublishError>> {
        publish::publish(self, messages).await
    }
}

#[async_trait]
impl Subscriber for KafkaBroker {
    async fn subscribe(
        &self,
        subscription: Subscription,
    ) -> Result<Box<dyn Deliveries>, BrokerError> {
        let subscription = self.settings.options.extend(subscription);
        subscribe::subscribe(self, &subscription).await
    }
}

/// Shows neither user nor password, and of settings their names.
impl fmt::Debug for KafkaBroker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Settings {
            config,
            options,
            replication,
        } = &*self.settings;
        f.debug_struct("KafkaBroker")
            .field("servers", &config.servers())
            .field("tls", &config.is_tls())
            .field("settings", &config.setting_names())
            .field("replication", replication)
            .field("options", options)
            .finish()
    }
}
