use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use outbox_runtime::broker::cloud_events::Binding;
use outbox_runtime::broker::{Broker, BrokerOptions, Topics, open};
use outbox_servers::Kind;

/// One kind of broker, as the suite needs it: what only a client that is not ours can do or see.
///
/// Implementations use the broker's own client crate, or plain sockets, and nothing of our adapters.
#[async_trait]
pub trait TestBroker: Send + Sync + 'static {
    /// The server.
    const KIND: Kind;

    /// How CloudEvents are laid out in its headers.
    const BINDING: Binding;

    /// Whether a group that is new gets what was published before.
    const KEEPS_FOR_NEW_GROUPS: bool;

    /// Whether the tests' server can ask for a password and speak TLS.
    const HAS_SECRETS: bool = true;

    /// Our adapter with a limit of its own or of the server's, and a payload's size in bytes that is
    /// above it.
    fn open_limited(url: &str, options: BrokerOptions) -> (Arc<dyn Broker>, usize) {
        (open(url, options).unwrap(), 1_500_000)
    }

    /// Puts a message where the event type's messages go, as a plain client would.
    ///
    /// What has to be there (stream, topic, exchange) is there already.
    async fn send(url: &str, topics: &Topics, message: PlainMessage);

    /// Makes a topic of somebody else's, by the broker's own name for it, if it is not there.
    async fn make_foreign(url: &str, topic: &str);

    /// Puts a message into a foreign topic.
    async fn send_foreign(url: &str, topic: &str, message: PlainMessage);

    /// Begins to listen to all that goes through a topic of ours, which is there already, from the
    /// first message that the broker still has or, where it keeps none, from now on.
    async fn tap(url: &str, topics: &Topics, topic: &str) -> Box<dyn Tap>;

    /// Removes a topic of ours with all that belongs to it: stream, topic, exchange, queues.
    async fn delete(url: &str, topics: &Topics, topic: &str);
}

/// Listens to a topic.
#[async_trait]
pub trait Tap: Send {
    /// The next message; panics when none comes within 10 s.
    async fn next(&mut self) -> PlainMessage;
}

/// A message as a client that knows nothing of CloudEvents sees it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PlainMessage {
    /// What sends it to its topic and, where brokers filter by it, to its readers. A tap leaves it
    /// empty where the broker does not carry it.
    pub event_type: String,
    /// What orders it: Kafka's key; elsewhere it chooses the partition. A tap leaves it empty where
    /// the broker does not carry it.
    pub key: String,
    /// The protocol's header or property of the name.
    pub content_type: Option<String>,
    /// The other headers.
    pub headers: BTreeMap<String, String>,
    /// The content.
    pub body: Vec<u8>,
}
