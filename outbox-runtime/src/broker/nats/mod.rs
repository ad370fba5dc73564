//! NATS JetStream.

mod connection;
mod consuming;
mod names;
mod publish;
mod reader;
mod stream;

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use async_trait::async_trait;

use self::connection::Connection;
use super::{
    BrokerError, BrokerOptions, ConfigError, Deliveries, PublishError, Publisher, Sharing,
    Subscriber, Subscription, publish_in_lanes,
};
use crate::domain::Message;

const ACK_WAIT: Duration = Duration::from_secs(30);
const SHORTEST_ACK_WAIT: Duration = Duration::from_secs(1);
const LONGEST_ACK_WAIT: Duration = Duration::from_secs(24 * 60 * 60);
const DUPLICATE_WINDOW: Duration = Duration::from_secs(120);

/// Publishes to and consumes from [NATS JetStream](https://docs.nats.io/nats-concepts/jetstream),
/// server 2.9 or later.
///
/// - **Streams.** The topic `events` of the namespace `outbox` is the stream `outbox_events`, made
///   where it is missing, in files and kept without limit unless [`keep`](Self::keep) sets one. A
///   message's subject is `outbox.events.<partition>.<event type>.<aggregate id>`, so that operators
///   and other clients can filter by each.
/// - **Publishing.** Each message is confirmed by the stream before the next of its aggregate goes
///   out. It carries its id as `Nats-Msg-Id`, by which the server drops a repetition within its
///   [duplicate window](Self::duplicate_window); that counts as taken.
/// - **Consuming.** Each partition of a group has a durable pull consumer, read by the instance that
///   has leased it. Who begins to read makes a new consumer that starts at the first message that is
///   not acknowledged, and removes the former one: whoever still reads by that is fenced off, and
///   order holds whatever was on its way. A group that is new starts at the stream's first message.
/// - **Acknowledging.** The server confirms each acknowledgement. While a handler runs, its message's
///   deadline is extended.
///
/// ```no_run
/// use outbox_runtime::broker::{BrokerOptions, NatsBroker};
///
/// let broker = NatsBroker::new("nats://127.0.0.1:4222", BrokerOptions::new())?.replicas(3);
/// # Ok::<(), outbox_runtime::broker::ConfigError>(())
/// ```
#[derive(Clone)]
pub struct NatsBroker {
    options: BrokerOptions,
    replicas: usize,
    ack_wait: Duration,
    keep: Option<Duration>,
    duplicate_window: Duration,
    connection: Connection,
}

impl NatsBroker {
    /// The servers at `nats://[user:password@]host:port` or, with TLS, `tls://..`; several are
    /// separated by commas. A user without a password is a token.
    ///
    /// # Errors
    /// [`ConfigError`] when the URL can't be understood.
    pub fn new(url: &str, options: BrokerOptions) -> Result<Self, ConfigError> {
        Ok(Self {
            connection: Connection::new(url, &options)?,
            options,
            replicas: 1,
            ack_wait: ACK_WAIT,
            keep: None,
            duplicate_window: DUPLICATE_WINDOW,
        })
    }

    /// Sets on how many servers of a cluster a stream that is made here is kept: 1 to 5, and 1
    /// unless told. A stream on one server is lost with that server's disk.
    #[must_use]
    pub fn replicas(mut self, replicas: usize) -> Self {
        self.replicas = replicas.clamp(1, 5);
        self
    }

    /// Sets after how long without an answer a message comes again: 1 s to one day, 30 s unless
    /// told. It is extended while a handler runs, so it is what a crash costs at most.
    #[must_use]
    pub fn ack_wait(mut self, wait: Duration) -> Self {
        self.ack_wait = wait.clamp(SHORTEST_ACK_WAIT, LONGEST_ACK_WAIT);
        self
    }

    /// Sets for how long a stream that is made here keeps messages, read or not. Without it, for
    /// ever.
    #[must_use]
    pub fn keep(mut self, age: Duration) -> Self {
        self.keep = Some(age);
        self
    }

    /// Sets within which time a stream that is made here drops a message that was published before
    /// (two minutes unless told). What comes later is absorbed by the inboxes.
    #[must_use]
    pub fn duplicate_window(mut self, window: Duration) -> Self {
        self.duplicate_window = window;
        self
    }

    /// Signs in with a file of NATS credentials (JWT and seed), as `nsc` writes it.
    #[must_use]
    pub fn credentials_file(mut self, path: impl Into<PathBuf>) -> Self {
        self.connection.set_credentials_file(path.into());
        self
    }
}

#[async_trait]
impl Publisher for NatsBroker {
    async fn publish(&self, messages: &[Message]) -> Vec<Result<(), PublishError>> {
        let publish = |message| publish::publish(self, message);
        publish_in_lanes(messages, self.options.start_within(), publish).await
    }
}

#[async_trait]
impl Subscriber for NatsBroker {
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
        let reader = reader::open(self, &subscription).await;
        reader
            .map(|reader| Box::new(reader) as Box<dyn Deliveries>)
            .map_err(|error| BrokerError::new("subscribing", error))
    }
}

/// Shows neither the URL nor the credentials.
impl fmt::Debug for NatsBroker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NatsBroker")
            .field("options", &self.options)
            .finish_non_exhaustive()
    }
}
