//! RabbitMQ.

mod connection;
mod failure;
mod incoming;
mod names;
mod outgoing;
mod publish;
mod reader;
mod server;
mod topology;
mod unrouted;
mod upkeep;

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use tokio::time::Instant;

use self::connection::Link;
use self::reader::Reader;
use self::server::Server;
use self::unrouted::Unrouted;
use super::{
    BrokerError, BrokerOptions, ConfigError, Deliveries, PublishError, Publisher, Sharing,
    Subscriber, Subscription, publish_in_lanes,
};
use crate::domain::Message;

/// What RabbitMQ 3 takes unless it is told otherwise.
const MAX_MESSAGE_BYTES: usize = 128 * 1024 * 1024;
const UNROUTABLE_AFTER: Duration = Duration::from_secs(60);

/// Publishes to and consumes from [RabbitMQ](https://www.rabbitmq.com), server 3.10 or later,
/// without plugins.
///
/// - **Topology.** The topic `events` of the namespace `outbox` is the durable topic exchange
///   `outbox.events`. A message's routing key is `<partition>.<event type>`. Each group has a durable
///   queue for each partition, `outbox.events.<group>.<partition>`, bound for the event types that it
///   handles. What is missing is made, also when it was deleted in between.
/// - **Order.** An aggregate's messages are in one partition. Its queue has a single active consumer,
///   so a second reader gets nothing until the first one's channel is gone, and then first what that
///   one had not acknowledged. A message that is given back closes the channel, and everything from
///   it on comes again.
/// - **Publishing.** Messages are persistent. Each is confirmed by all queues that it goes to before
///   the next of its aggregate goes out. A message that no queue is bound for is offered again for
///   half a minute and then [refused](Self::unroutable), since RabbitMQ would drop it. A call takes
///   at most twice `confirm_within`: once until each message has one of 64 channels, and once for the
///   confirmation of the last one.
/// - **Foreign topics** that are not there are looked for every 10 s; what is our own is read
///   meanwhile. RabbitMQ gives messages no place in an exchange, so
///   [`RawMessage::position`](super::RawMessage::position) is the property `message-id` that the
///   publisher gave, and no more unique than that one made it. Without the property it is new each
///   time that a message of a foreign topic comes, so give its event an id then.
/// - **A group that is new** gets what is published after its queues were made, and nothing older.
///   `App` subscribes before its relay starts; among several services, start the consumers first.
/// - **Limits.** A routing key has at most 255 bytes, so an event type at most 249. Headers have to
///   fit into a frame (128 KiB). RabbitMQ closes the channel of a reader whose handler takes longer
///   than its `consumer_timeout` (30 minutes); the message comes again and the inbox absorbs it.
///
/// ```no_run
/// use outbox_runtime::broker::{BrokerOptions, QueueType, RabbitMqBroker};
///
/// let url = "amqp://user:password@127.0.0.1:5672/shop?heartbeat=10";
/// let broker = RabbitMqBroker::new(url, BrokerOptions::new())?
///     .queue_type(QueueType::Quorum)
///     .nobody_reads(["CartAbandoned"]);
/// # Ok::<(), outbox_runtime::broker::ConfigError>(())
/// ```
#[derive(Clone)]
pub struct RabbitMqBroker {
    options: BrokerOptions,
    queue_type: QueueType,
    unroutable: Unroutable,
    unroutable_after: Duration,
    nobody_reads: BTreeSet<String>,
    max_message_bytes: usize,
    publishing: Link,
    consuming: Link,
    unrouted: Unrouted,
}

/// What RabbitMQ keeps a queue as.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum QueueType {
    /// On one server, and on its disk.
    #[default]
    Classic,
    /// On several servers of a cluster, of which a majority has to run.
    Quorum,
}

/// What becomes of a message that no queue is bound for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Unroutable {
    /// It is offered again for [a while](RabbitMqBroker::unroutable_after), as consumers may be about
    /// to bind their queues. Then it is a permanent failure: it becomes a dead letter and holds back
    /// its aggregate, until an operator requeues or discards it.
    #[default]
    Refuse,
    /// It counts as published, and RabbitMQ drops it.
    Accept,
}

impl RabbitMqBroker {
    /// The server at `amqp://[user:password@]host[:port][/vhost]` or, with TLS, `amqps://..`.
    ///
    /// Special characters in user, password and virtual host are percent-encoded; a path that is
    /// missing or empty is the virtual host `/`. The hosts of a cluster stand with commas between and
    /// are tried in order. Parameters are `heartbeat` (10 s unless told) and `connection_timeout` (in
    /// milliseconds, 10,000 unless told).
    ///
    /// # Errors
    /// [`ConfigError`] when the URL can't be understood or the root certificate can't be read.
    pub fn new(url: &str, options: BrokerOptions) -> Result<Self, ConfigError> {
        let server = Arc::new(Server::new(url, &options)?);
        Ok(Self {
            options,
            queue_type: QueueType::default(),
            unroutable: Unroutable::default(),
            unroutable_after: UNROUTABLE_AFTER,
            nobody_reads: BTreeSet::new(),
            max_message_bytes: MAX_MESSAGE_BYTES,
            publishing: Link::new(Arc::clone(&server), "outbox publishing"),
            consuming: Link::new(server, "outbox consuming"),
            unrouted: Unrouted::default(),
        })
    }

    /// Sets what queues are made as: classic unless told.
    ///
    /// Take quorum queues on a cluster: a classic queue can't be reached while its server is down. A
    /// queue that exists stays what it is, so all services say the same, and to change it, the queues
    /// are deleted when they are empty.
    #[must_use]
    pub fn queue_type(mut self, queue_type: QueueType) -> Self {
        self.queue_type = queue_type;
        self
    }

    /// Sets what becomes of a message that no queue is bound for: it is refused unless told.
    #[must_use]
    pub fn unroutable(mut self, unroutable: Unroutable) -> Self {
        self.unroutable = unroutable;
        self
    }

    /// Sets for how long a message that no queue is bound for is offered again before it is refused:
    /// 60 s unless told, and not at all with zero.
    ///
    /// An exchange or a queue that was deleted, or a server that came back empty, is no fault of a
    /// message, and consumers make what they need again: within 10 s where they are connected, and
    /// within the longest wait of their backoff (30 s) where they were not. Set more where they take
    /// longer, such as with a rollout. The time counts from when this publisher first saw it for the
    /// exchange and the routing key, until one of them is taken, or none was offered for ten minutes.
    #[must_use]
    pub fn unroutable_after(mut self, time: Duration) -> Self {
        self.unroutable_after = time;
        self
    }

    /// Names events that may have no reader; where no queue is bound for them, RabbitMQ drops them.
    #[must_use]
    pub fn nobody_reads(
        mut self,
        event_types: impl IntoIterator<Item = impl Into<String>>,
    ) -> Self {
        let event_types = event_types.into_iter().map(Into::into);
        self.nobody_reads.extend(event_types);
        self
    }

    /// Sets the longest body that is sent: 128 MiB unless told, as RabbitMQ 3 has it for its
    /// `max_message_size` (RabbitMQ 4: 16 MiB). What is longer is a permanent failure here, as it is
    /// there.
    #[must_use]
    pub fn max_message_bytes(mut self, bytes: usize) -> Self {
        self.max_message_bytes = bytes;
        self
    }
}

#[async_trait]
impl Publisher for RabbitMqBroker {
    async fn publish(&self, messages: &[Message]) -> Vec<Result<(), PublishError>> {
        let begun_by = Instant::now() + self.options.confirm_within;
        let publish = |message| publish::publish(self, message, begun_by);
        publish_in_lanes(messages, self.options.start_within(), publish).await
    }
}

#[async_trait]
impl Subscriber for RabbitMqBroker {
    fn sharing(&self) -> Sharing {
        Sharing::Leased {
            partitions: self.options.partitions,
        }
    }

    async fn subscribe(
        &self,
        subscription: Subscription,
    ) -> Result<Box<dyn Deliveries>, BrokerError> {
        let subscription = self.options.extend(subscription);
        match Reader::open(self, &subscription).await {
            Ok(reader) => Ok(Box::new(reader)),
            Err(failure) => Err(BrokerError::new("subscribing", failure)),
        }
    }
}

/// Shows neither the URL nor the credentials.
impl fmt::Debug for RabbitMqBroker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RabbitMqBroker")
            .field("options", &self.options)
            .field("queue_type", &self.queue_type)
            .field("unroutable", &self.unroutable)
            .field("unroutable_after", &self.unroutable_after)
            .field("nobody_reads", &self.nobody_reads)
            .field("max_message_bytes", &self.max_message_bytes)
            .finish_non_exhaustive()
    }
}
