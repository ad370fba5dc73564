use std::collections::BTreeSet;
use std::fmt;
use std::num::NonZeroU16;
use std::path::PathBuf;
use std::time::Duration;

use percent_encoding::percent_decode_str;

use super::cloud_events::ContentMode;
use super::foreign::ForeignTopic;
use super::subscriber::Subscription;
use super::topics::Topics;

const PARTITIONS: NonZeroU16 = NonZeroU16::MIN.saturating_add(15);
const CONFIRM_WITHIN: Duration = Duration::from_secs(4);
const LONGEST_CONFIRM: Duration = Duration::from_secs(24 * 60 * 60);
const SHORTEST_CONFIRM: Duration = Duration::from_millis(10);
const PREFETCH: usize = 256;
const MOST_PREFETCH: usize = 10_000;

/// What all adapters of real brokers have in common.
///
/// ```
/// use std::time::Duration;
/// use outbox_runtime::broker::{BrokerOptions, ContentMode, Topics};
///
/// let options = BrokerOptions::new()
///     .topics(Topics::new("shop")?)
///     .content_mode(ContentMode::Structured)
///     .confirm_within(Duration::from_secs(2));
/// # Ok::<(), outbox_runtime::broker::ConfigError>(())
/// ```
#[derive(Debug, Clone)]
pub struct BrokerOptions {
    pub(super) topics: Topics,
    pub(super) content_mode: ContentMode,
    pub(super) foreign: Vec<ForeignTopic>,
    pub(super) partitions: NonZeroU16,
    pub(super) confirm_within: Duration,
    pub(super) deliver_also: BTreeSet<String>,
    pub(super) prefetch: usize,
    pub(super) declare: bool,
    pub(super) credentials: Option<Credentials>,
    pub(super) root_certificate: Option<PathBuf>,
}

impl BrokerOptions {
    /// The namespace `outbox`, binary mode, 16 partitions, confirmation within 4 s, 256 messages
    /// ahead.
    pub fn new() -> Self {
        Self {
            topics: Topics::default(),
            content_mode: ContentMode::default(),
            foreign: Vec::new(),
            partitions: PARTITIONS,
            confirm_within: CONFIRM_WITHIN,
            deliver_also: BTreeSet::new(),
            prefetch: PREFETCH,
            declare: true,
            credentials: None,
            root_certificate: None,
        }
    }

    /// Sets the names of streams, topics and exchanges. All services that exchange events need
    /// the same.
    #[must_use]
    pub fn topics(mut self, topics: Topics) -> Self {
        self.topics = topics;
        self
    }

    /// Sets how CloudEvents are laid out in messages that are published. Both ways are read.
    #[must_use]
    pub fn content_mode(mut self, mode: ContentMode) -> Self {
        self.content_mode = mode;
        self
    }

    /// Consumes events of these types also if no handler takes them.
    ///
    /// A consumer asks for the types that its handlers take, and everything else passes it by
    /// without a trace. A type that is named here reaches it all the same, and then
    /// [`OnUnhandled`](crate::inbox::OnUnhandled) says what becomes of it: name the types of handlers
    /// that were removed, or that come with the next release while this one still reads beside it.
    #[must_use]
    pub fn deliver_also(
        mut self,
        event_types: impl IntoIterator<Item = impl Into<String>>,
    ) -> Self {
        let event_types = event_types.into_iter().map(Into::into);
        self.deliver_also.extend(event_types);
        self
    }

    /// Consumes a topic that others own, too. Of two with one name the later counts.
    #[must_use]
    pub fn foreign(mut self, topic: ForeignTopic) -> Self {
        self.foreign.retain(|known| known.name != topic.name);
        self.foreign.push(topic);
        self
    }

    /// Sets into how many parts a topic is divided: more than there will ever be instances of one
    /// service, and the same for all that publish or consume it. 16 unless told.
    ///
    /// An aggregate's events are all in one part, which one instance reads. With Kafka it is the
    /// number of partitions that a topic gets when it is made. To change it, let the consumers
    /// finish what is published, stop all, and start them with the new number.
    #[must_use]
    pub fn partitions(mut self, partitions: NonZeroU16) -> Self {
        self.partitions = partitions;
        self
    }

    /// Sets how long the broker may take to confirm a message: 10 ms to one day, 4 s unless told.
    /// Keep it below half of the relay's publish timeout (10 s), since a call to the broker may take
    /// twice as long. What is not confirmed by then is offered again.
    #[must_use]
    pub fn confirm_within(mut self, limit: Duration) -> Self {
        self.confirm_within = limit.clamp(SHORTEST_CONFIRM, LONGEST_CONFIRM);
        self
    }

    /// Sets how many messages the broker may hand out ahead to each subscription: 1 to 10,000, and
    /// 256 unless told.
    #[must_use]
    pub fn prefetch(mut self, messages: usize) -> Self {
        self.prefetch = messages.clamp(1, MOST_PREFETCH);
        self
    }

    /// Sets user and password, which go before those in the URL. They are shown nowhere.
    #[must_use]
    pub fn credentials(mut self, user: impl Into<String>, password: impl Into<String>) -> Self {
        self.credentials = Some(Credentials {
            user: user.into(),
            password: password.into(),
        });
        self
    }

    /// Trusts the certificates in this PEM file besides the well-known ones, where the URL's scheme
    /// asks for TLS.
    #[must_use]
    pub fn root_certificate(mut self, pem: impl Into<PathBuf>) -> Self {
        self.root_certificate = Some(pem.into());
        self
    }

    /// Sets whether streams, topics, exchanges and queues are made where they are missing, at the
    /// start and again when somebody deleted them. They are unless told; otherwise what is missing
    /// is reported until somebody makes it.
    #[must_use]
    pub fn declare(mut self, declare: bool) -> Self {
        self.declare = declare;
        self
    }
}

/// Who an adapter signs in as.
#[derive(Clone)]
pub(super) struct Credentials {
    pub(super) user: String,
    pub(super) password: String,
}

impl Credentials {
    /// Those in a URL, before its `@`, with what is percent-encoded in them; `None` if that gives no
    /// UTF-8.
    pub(super) fn decode(user: &str, password: &str) -> Option<Self> {
        let decoded = |text| percent_decode_str(text).decode_utf8().ok().map(Into::into);
        Some(Self {
            user: decoded(user)?,
            password: decoded(password)?,
        })
    }
}

/// Shows neither user nor password.
impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Credentials(..)")
    }
}

impl BrokerOptions {
    /// Within which time of a call a further message may begin, so that the call ends below the
    /// relay's publish timeout.
    pub(super) fn start_within(&self) -> Duration {
        self.confirm_within / 2
    }

    /// The subscription with the types that are delivered besides those that handlers take.
    pub(super) fn extend(&self, mut subscription: Subscription) -> Subscription {
        let also = self.deliver_also.iter().cloned();
        subscription.event_types.extend(also);
        subscription
    }
}

impl Default for BrokerOptions {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_two_foreign_topics_with_one_name_the_later_counts() {
        let options = BrokerOptions::new()
            .foreign(ForeignTopic::cloud_events("a"))
            .foreign(ForeignTopic::cloud_events("b"))
            .foreign(ForeignTopic::mapped("a", |_| Ok(None)));
        let names: Vec<_> = options.foreign.iter().map(|topic| &topic.name).collect();
        assert_eq!(names, ["b", "a"]);
        assert!(options.foreign.iter().any(|topic| topic.map().is_some()));
    }

    #[test]
    fn a_call_ends_below_the_publish_timeout_of_a_relay() {
        let options = BrokerOptions::new();
        let longest = options.start_within() + options.confirm_within;
        assert!(longest < Duration::from_secs(10), "{longest:?}");
    }
}
