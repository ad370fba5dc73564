use std::collections::BTreeMap;
use std::time::Duration;

use crate::backoff::Backoff;
use crate::retry::RetryPolicy;

/// What happens to a message that no handler wants.
///
/// A consumer subscribes only to the events that its handlers name, so such a message is left
/// behind by a handler that was removed, or comes from a broker that does not filter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum OnUnhandled {
    /// Acknowledge it, count it, and log it once for each event type.
    #[default]
    Ignore,
    /// Park it as a dead letter of no consumer, which degrades the health. Once a program with a
    /// handler is deployed an operator can requeue it.
    Park,
}

/// What happens to a message of a version that a consumer's handlers do not read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum OnUnreadable {
    /// Park it as a dead letter, which degrades the health. Once a program that reads it is deployed
    /// an operator can requeue it.
    #[default]
    Park,
    /// Acknowledge it, count it, and log a warning.
    Discard,
}

/// How many messages are handled at a time unless the user says.
const MOST_UNLESS_TOLD: usize = 16;

const SHORTEST_LEASE: Duration = Duration::from_millis(300);
const LONGEST_LEASE: Duration = Duration::from_secs(24 * 60 * 60);

/// How a consumer works. The defaults suit most services.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConsumerOptions {
    concurrency: Option<usize>,
    pub(super) batch: usize,
    pub(super) prefetch: usize,
    pub(super) prefetch_bytes: usize,
    pub(super) backoff: Backoff,
    retry: RetryPolicy,
    retry_of: BTreeMap<String, RetryPolicy>,
    pub(super) poll_interval: Duration,
    pub(super) lease: Duration,
    pub(super) broker_timeout: Duration,
    pub(super) on_unhandled: OnUnhandled,
    pub(super) on_unreadable: OnUnreadable,
    pub(super) shutdown_deadline: Duration,
}

impl ConsumerOptions {
    /// 16 messages at a time (fewer with a small pool), 256 or 64 MiB taken in advance, retries for
    /// a day, after 100 ms doubling to 30 s.
    pub fn new() -> Self {
        Self {
            concurrency: None,
            batch: 1,
            prefetch: 256,
            prefetch_bytes: 64 << 20,
            backoff: Backoff::default(),
            retry: RetryPolicy::new(),
            retry_of: BTreeMap::new(),
            poll_interval: Duration::from_secs(5),
            lease: Duration::from_secs(15),
            broker_timeout: Duration::from_secs(30),
            on_unhandled: OnUnhandled::default(),
            on_unreadable: OnUnreadable::default(),
            shutdown_deadline: Duration::from_secs(30),
        }
    }

    /// Sets how many messages of different aggregates are handled at a time, at least 1.
    ///
    /// Each takes a connection of the pool while it is handled. Unless told it is 16, or half of
    /// the pool's connections where that is less, so that the relay and the rest of the service
    /// find some.
    #[must_use]
    pub fn concurrency(mut self, messages: usize) -> Self {
        self.concurrency = Some(messages.max(1));
        self
    }

    /// Sets how many messages of different aggregates may be handled in one transaction: at least 1,
    /// and 1 unless told.
    ///
    /// A batch takes the messages that are there and waits for none. It saves most of what a message
    /// costs the database, above all its own commit. When anything in it fails, all of it is rolled
    /// back and each message is handled alone, in a transaction of its own, as without batches; after
    /// a failure batches are smaller for a while.
    ///
    /// What changes for handlers:
    /// - one may run again although it did not fail itself, because another of its batch did. What it
    ///   does outside of the database (a mail, a call) is then done again;
    /// - locks that it takes are held until the last handler of the batch is done and the batch has
    ///   committed, and `now()` is the batch's;
    /// - what it sets for the transaction (`SET LOCAL`, `SET CONSTRAINTS`, `set_config(.., true)`)
    ///   stays set for the handlers after it;
    /// - one that ends the transaction by SQL of its own, which it must not do, ends it for all.
    #[must_use]
    pub fn batch(mut self, messages: usize) -> Self {
        self.batch = messages.max(1);
        self
    }

    /// Sets how many messages may be taken from the broker and not yet done, at least 1.
    ///
    /// A message that is parked is done: it keeps no place.
    #[must_use]
    pub fn prefetch(mut self, messages: usize) -> Self {
        self.prefetch = messages.max(1);
        self
    }

    /// Sets how many bytes of payload and header values the messages may have that are taken from
    /// the broker and not yet done, in steps of 1 KiB; 64 MiB unless told.
    ///
    /// One more message of each subscription is held while it waits for its room, as its size shows
    /// only when it is there. A message that is larger than all the room waits until the others are done, and is
    /// handled alone.
    #[must_use]
    pub fn prefetch_bytes(mut self, bytes: usize) -> Self {
        self.prefetch_bytes = bytes;
        self
    }

    /// Sets how long to wait before a failed message, or a broker or database that is down, is tried
    /// again. A retry policy may have its own.
    #[must_use]
    pub fn backoff(mut self, backoff: Backoff) -> Self {
        self.backoff = backoff;
        self
    }

    /// Sets how often a failed message is tried again, and what follows.
    #[must_use]
    pub fn retry(mut self, policy: RetryPolicy) -> Self {
        self.retry = policy;
        self
    }

    /// Sets the retry policy of one consumer.
    #[must_use]
    pub fn retry_of(mut self, consumer: impl Into<String>, policy: RetryPolicy) -> Self {
        self.retry_of.insert(consumer.into(), policy);
        self
    }

    /// Sets how often parked messages are looked at when nothing wakes the consumer (5 s unless
    /// told): that is how it finds what an operator requeued.
    #[must_use]
    pub fn poll_interval(mut self, interval: Duration) -> Self {
        self.poll_interval = interval;
        self
    }

    /// Sets how long a partition stays with an instance that no longer renews its lease: what a
    /// crash costs at most in delay, at a broker whose partitions are leased
    /// ([`Sharing::Leased`](crate::broker::Sharing)). It is renewed three times in that time. 300 ms
    /// to one day, and 15 s unless told.
    #[must_use]
    pub fn lease(mut self, lease: Duration) -> Self {
        self.lease = lease.clamp(SHORTEST_LEASE, LONGEST_LEASE);
        self
    }

    /// Sets how long the broker may take to answer a subscription or an acknowledgement. Then it is
    /// asked anew, or delivers the message again, which the inbox absorbs. 30 s unless told.
    #[must_use]
    pub fn broker_timeout(mut self, timeout: Duration) -> Self {
        self.broker_timeout = timeout;
        self
    }

    /// Sets what happens to a message that no handler wants.
    #[must_use]
    pub fn on_unhandled(mut self, outcome: OnUnhandled) -> Self {
        self.on_unhandled = outcome;
        self
    }

    /// Sets what happens to a message of a version that nobody reads.
    #[must_use]
    pub fn on_unreadable(mut self, outcome: OnUnreadable) -> Self {
        self.on_unreadable = outcome;
        self
    }

    /// Sets how long handlers may go on after the shutdown signal (30 s unless told; an app sets
    /// its own).
    #[must_use]
    pub fn shutdown_deadline(mut self, deadline: Duration) -> Self {
        self.shutdown_deadline = deadline;
        self
    }
}

impl ConsumerOptions {
    /// The retry policy of a consumer.
    pub(super) fn policy(&self, consumer: &str) -> RetryPolicy {
        self.retry_of.get(consumer).copied().unwrap_or(self.retry)
    }

    /// How many messages are handled at a time, with a pool of so many connections.
    pub(super) fn concurrency_with(&self, connections: u32) -> usize {
        self.concurrency.unwrap_or_else(|| {
            let half = usize::try_from(connections / 2).unwrap_or(usize::MAX);
            half.clamp(1, MOST_UNLESS_TOLD)
        })
    }
}

impl Default for ConsumerOptions {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_small_pool_is_not_used_up() {
        let options = ConsumerOptions::new();
        assert_eq!(options.concurrency_with(1), 1);
        assert_eq!(options.concurrency_with(10), 5);
        assert_eq!(options.concurrency_with(100), 16);
        assert_eq!(options.concurrency(40).concurrency_with(10), 40);
    }
}
