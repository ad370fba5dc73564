use std::time::Duration;

use crate::backoff::Backoff;

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
    /// Hold it, and everything behind it in its aggregate, and degrade the health.
    Fail,
}

/// What happens to a message of a version that a consumer's handlers do not read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum OnUnreadable {
    /// Hold it, and everything behind it in its aggregate, and degrade the health, until a program
    /// that reads it takes over.
    #[default]
    Hold,
    /// Acknowledge it, count it, and log a warning.
    Discard,
}

/// How many messages are handled at a time unless the user says.
const MOST_UNLESS_TOLD: usize = 16;

/// How a consumer works. The defaults suit most services.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConsumerOptions {
    concurrency: Option<usize>,
    pub(super) prefetch: usize,
    pub(super) backoff: Backoff,
    pub(super) on_unhandled: OnUnhandled,
    pub(super) on_unreadable: OnUnreadable,
    pub(super) shutdown_deadline: Duration,
}

impl ConsumerOptions {
    /// 16 messages at a time (fewer with a small pool), 256 taken in advance, retries after 100 ms
    /// doubling to 30 s.
    pub fn new() -> Self {
        Self {
            concurrency: None,
            prefetch: 256,
            backoff: Backoff::default(),
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

    /// Sets how many messages may be taken from the broker and not yet done, at least 1.
    ///
    /// A message that is being retried keeps its place, and so do those behind it in its aggregate.
    #[must_use]
    pub fn prefetch(mut self, messages: usize) -> Self {
        self.prefetch = messages.max(1);
        self
    }

    /// Sets how long to wait before a failed message, or a broker that is down, is tried again.
    #[must_use]
    pub fn backoff(mut self, backoff: Backoff) -> Self {
        self.backoff = backoff;
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
