//! Redis Streams.

mod connection;
mod entry;
mod failure;
mod publish;
mod reader;
mod slip;
mod subscribe;
mod tls;
mod topology;
mod url;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;

use self::connection::{Server, Shared};
use self::publish::Replication;
use super::{
    BrokerError, BrokerOptions, ConfigError, Deliveries, PublishError, Publisher, Sharing,
    Subscriber, Subscription,
};
use crate::domain::Message;

/// What a message may have with its attributes.
const MAX_MESSAGE_BYTES: usize = 16 << 20;

/// Publishes to and consumes from [Redis Streams](https://redis.io/docs/latest/develop/data-types/streams/),
/// server 6.2 or later.
///
/// - **Streams.** The topic `events` of the namespace `outbox` is the streams `{outbox.events.0}` to
///   `{outbox.events.15}`, one for each [partition](BrokerOptions::partitions). An aggregate's events
///   are all in one.
/// - **Publishing.** What a call has for a stream goes there in one script, which stops an aggregate
///   at its first failure. So order holds, at one round trip for many messages.
/// - **Consuming.** Each partition is read by the instance that has leased it, as the only consumer of
///   its group on the stream. Who begins to read takes over all that is not acknowledged and removes
///   the consumer before it in one step; whoever was that reads nothing any more. A group that is new
///   starts at the stream's oldest entry.
/// - **Acknowledging.** A message is acknowledged (`XACK`) when its inbox has committed, and each
///   answer is awaited. When one is given back, the group reads again from the oldest that is not
///   acknowledged.
///
/// ```no_run
/// use std::time::Duration;
/// use outbox_runtime::broker::{BrokerOptions, RedisBroker};
///
/// let week = Duration::from_secs(7 * 24 * 60 * 60);
/// let broker = RedisBroker::new("redis://127.0.0.1:6379", BrokerOptions::new())?.keep(week);
/// # Ok::<(), outbox_runtime::broker::ConfigError>(())
/// ```
///
/// # An entry's fields
///
/// CloudEvents has no binding for Redis Streams. In binary mode an entry has the fields `ce_id`,
/// `ce_type` and so on, named as the headers of Kafka's binding, `content-type`, and `data` with the
/// payload; in structured mode `content-type` (`application/cloudevents+json`) and `data`. Of an entry
/// that others have added, `data` is the body, `content-type` the content type, and all other fields
/// are headers.
///
/// # What you have to decide
///
/// - **Streams grow for ever**, since acknowledging removes no entry. Set [`keep`](Self::keep), or trim
///   them yourself (`XTRIM`), before the memory is full.
/// - **Redis confirms what is in its memory.** What a crash loses depends on its settings:
///   with `appendonly yes` and `appendfsync always` nothing, with `everysec` about the last second,
///   otherwise all since the last snapshot. It is not published again, since it was confirmed.
/// - **Replicas follow behind.** A failover loses what they do not have yet, unless
///   [`wait_for`](Self::wait_for) has each message wait for them.
/// - The server must not evict keys: `maxmemory-policy noeviction`.
///
/// # Limits
///
/// - Redis drops no duplicates. What is published twice is handled once, by the inbox.
/// - One server, or a primary with replicas behind one address that leads to the primary. The keys of
///   Redis Cluster are not spread and its redirections are not followed; Sentinel is not asked.
/// - Each subscription has a connection of its own, on which it waits for news; all share one for
///   reading and one for publishing.
#[derive(Clone)]
pub struct RedisBroker {
    options: BrokerOptions,
    server: Arc<Server>,
    publishing: Arc<Shared>,
    consuming: Arc<Shared>,
    max_message_bytes: usize,
    keep: Option<Duration>,
    replication: Option<Replication>,
}

impl RedisBroker {
    /// The server at `redis://[user:password@]host[:port][/database][?protocol=resp3]` or, with TLS,
    /// `rediss://..`. The port is 6379 and the database 0 unless told; `:password@` signs in without
    /// a user, as before Redis 6. What is special in user and password is percent-encoded.
    ///
    /// Nothing is connected yet.
    ///
    /// # Errors
    /// [`ConfigError`] when the URL can't be understood or the root certificates can't be read.
    pub fn new(url: &str, options: BrokerOptions) -> Result<Self, ConfigError> {
        let server = Arc::new(Server::new(url, &options)?);
        Ok(Self {
            options,
            publishing: Arc::new(Shared::new(Arc::clone(&server))),
            consuming: Arc::new(Shared::new(Arc::clone(&server))),
            server,
            max_message_bytes: MAX_MESSAGE_BYTES,
            keep: None,
            replication: None,
        })
    }

    /// Sets how large a message may be with its attributes, in bytes: 16 MiB unless told. The server
    /// takes 512 MB as it comes (`proto-max-bulk-len`), and does nothing else meanwhile.
    ///
    /// A larger one is a permanent failure of that message.
    #[must_use]
    pub fn max_message_bytes(mut self, bytes: usize) -> Self {
        self.max_message_bytes = bytes;
        self
    }

    /// Sets for how long entries are kept at least, by the server's clock, **whether they were
    /// handled or not**. Without it they are kept for ever.
    ///
    /// Whenever something is published to a stream, blocks of entries that are older are removed from
    /// it (`MINID ~`); a stream to which nothing is published keeps what it has. Choose more than the
    /// longest time that a consumer may be away. What it has not handled by then is lost to it; it logs
    /// a warning for each message that it had read and not finished.
    #[must_use]
    pub fn keep(mut self, age: Duration) -> Self {
        self.keep = Some(age);
        self
    }

    /// Has a message count as published only when so many replicas have it (`WAIT`), and otherwise
    /// be offered again. 0, which is the default, waits for none.
    ///
    /// `within` is how long they may take, at most as long as
    /// [`confirm_within`](BrokerOptions::confirm_within) allows. They have it in memory then; whether
    /// on disk is for their own settings to say.
    #[must_use]
    pub fn wait_for(mut self, replicas: u32, within: Duration) -> Self {
        self.replication = (replicas > 0).then_some(Replication { replicas, within });
        self
    }
}

#[async_trait]
impl Publisher for RedisBroker {
    async fn publish(&self, messages: &[Message]) -> Vec<Result<(), PublishError>> {
        publish::publish(self, messages).await
    }
}

#[async_trait]
impl Subscriber for RedisBroker {
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
        subscribe::subscribe(self, &subscription).await
    }
}

/// Shows neither user nor password.
impl fmt::Debug for RedisBroker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisBroker")
            .field("address", &format_args!("{}", self.server.address))
            .field("is_tls", &self.server.address.is_tls)
            .field("options", &self.options)
            .field("max_message_bytes", &self.max_message_bytes)
            .field("keep", &self.keep)
            .field("replication", &self.replication)
            .finish_non_exhaustive()
    }
}
