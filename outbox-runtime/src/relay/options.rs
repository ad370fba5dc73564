mod pressure;

use std::collections::HashMap;
use std::fmt;
use std::time::Duration;

use super::backlog::Ceiling;
use super::rate::Rate;
use crate::backoff::Backoff;
use crate::retry::RetryPolicy;

/// How a [`Relay`](super::Relay) works. The defaults suit a service with one to ten instances.
///
/// ```
/// use std::time::Duration;
/// use outbox_runtime::relay::RelayOptions;
///
/// let options = RelayOptions::default()
///     .batch_size(500)
///     .lease(Duration::from_secs(30));
/// assert!(options.check().is_ok());
/// assert!(options.batch_size(0).check().is_err());
/// ```
#[derive(Debug, Clone)]
#[must_use]
pub struct RelayOptions {
    pub(super) batch_size: usize,
    pub(super) max_in_flight: usize,
    pub(super) max_held: usize,
    pub(super) batch_bytes: usize,
    pub(super) max_in_flight_bytes: usize,
    pub(super) max_held_bytes: usize,
    pub(super) rate_limit: Option<Rate>,
    pub(super) failed_calls: u32,
    pub(super) lease: Duration,
    pub(super) poll_min: Duration,
    pub(super) poll_max: Duration,
    pub(super) publish_timeout: Duration,
    pub(super) shutdown_deadline: Duration,
    pub(super) backoff: Backoff,
    pub(super) backlog_ceiling: Ceiling,
    pub(super) backlog_interval: Duration,
    retry: RetryPolicy,
    retry_by_event: HashMap<String, RetryPolicy>,
}

impl Default for RelayOptions {
    fn default() -> Self {
        Self {
            batch_size: 100,
            max_in_flight: 8,
            max_held: 10_000,
            batch_bytes: 1 << 20,
            max_in_flight_bytes: 8 << 20,
            max_held_bytes: 64 << 20,
            rate_limit: None,
            failed_calls: 5,
            lease: Duration::from_secs(15),
            poll_min: Duration::from_millis(10),
            poll_max: Duration::from_secs(1),
            publish_timeout: Duration::from_secs(10),
            shutdown_deadline: Duration::from_secs(10),
            backoff: Backoff::default(),
            backlog_ceiling: Ceiling {
                rows: 100_000,
                age: Duration::from_secs(5 * 60),
            },
            backlog_interval: Duration::from_secs(10),
            retry: RetryPolicy::default(),
            retry_by_event: HashMap::new(),
        }
    }
}

/// Beyond any use, and below what an `Instant` can be moved by.
const LONGEST: Duration = Duration::from_secs(365 * 24 * 3600);

impl RelayOptions {
    /// At most so many messages go to the publisher in one call. 100 if not set.
    pub fn batch_size(mut self, messages: usize) -> Self {
        self.batch_size = messages;
        self
    }

    /// At most so many calls to the publisher run at a time. 8 if not set.
    pub fn max_in_flight(mut self, calls: usize) -> Self {
        self.max_in_flight = calls;
        self
    }

    /// At most so many messages are in memory; then reading waits. 10,000 if not set.
    pub fn max_held(mut self, messages: usize) -> Self {
        self.max_held = messages;
        self
    }

    /// How long a shard stays with an instance that no longer renews its lease: what a crash costs
    /// at most in delay. It is renewed three times in that time. 300 ms to one day; 15 s if not set.
    pub fn lease(mut self, lease: Duration) -> Self {
        self.lease = lease;
        self
    }

    /// How often the log is read when nothing wakes the relay: the first pause after news, and the
    /// longest after a quiet time. 10 ms and 1 s if not set.
    pub fn poll_interval(mut self, min: Duration, max: Duration) -> Self {
        (self.poll_min, self.poll_max) = (min.min(LONGEST), max.min(LONGEST));
        self
    }

    /// How long a call to the publisher may take; then its messages are offered again. 10 s if
    /// not set.
    pub fn publish_timeout(mut self, timeout: Duration) -> Self {
        self.publish_timeout = timeout.min(LONGEST);
        self
    }

    /// How long a shutdown may wait for what is in flight. 10 s if not set.
    pub fn shutdown_deadline(mut self, deadline: Duration) -> Self {
        self.shutdown_deadline = deadline.min(LONGEST);
        self
    }

    /// How long a message that failed waits for its next attempt. 100 ms doubling to 30 s if not
    /// set.
    pub fn backoff(mut self, backoff: Backoff) -> Self {
        self.backoff = backoff;
        self
    }

    /// How parked messages are tried again, and when they are dead. Its waits are those of
    /// [`backoff`](Self::backoff) if it has none of its own.
    pub fn retry(mut self, policy: RetryPolicy) -> Self {
        self.retry = policy;
        self
    }

    /// The same for one event, by its name on the wire.
    ///
    /// ```
    /// use outbox_runtime::relay::RelayOptions;
    /// use outbox_runtime::retry::{OnDead, RetryPolicy};
    ///
    /// // Orders need not wait for a price that no broker takes.
    /// let prices = RetryPolicy::new().on_dead(OnDead::GoOn);
    /// let options = RelayOptions::default().retry_event("PriceShown", prices);
    /// ```
    pub fn retry_event(mut self, event_type: impl Into<String>, policy: RetryPolicy) -> Self {
        self.retry_by_event.insert(event_type.into(), policy);
        self
    }

    /// The policy for an event.
    pub(super) fn retry_policy(&self, event_type: Option<&str>) -> &RetryPolicy {
        event_type
            .and_then(|event_type| self.retry_by_event.get(event_type))
            .unwrap_or(&self.retry)
    }

    /// Checks the options, all at once.
    ///
    /// # Errors
    /// [`RelayOptionsError`] names each option that can't be used.
    pub fn check(&self) -> Result<(), RelayOptionsError> {
        let lease = Duration::from_millis(300)..=Duration::from_secs(24 * 3600);
        let rules = [
            (self.batch_size > 0, "batch_size has to be at least 1"),
            (self.max_in_flight > 0, "max_in_flight has to be at least 1"),
            (
                self.max_held >= self.batch_size,
                "max_held has to be at least batch_size",
            ),
            (
                self.batch_bytes > 0 && self.max_in_flight_bytes > 0 && self.max_held_bytes > 0,
                "batch_bytes, max_in_flight_bytes and max_held_bytes have to be at least 1",
            ),
            (
                self.rate_limit.is_none_or(Rate::is_usable),
                "rate_limit needs 1 to 1,000,000 messages a second and a burst of at least 1",
            ),
            (
                self.failed_calls > 0,
                "circuit_breaker has to be at least 1",
            ),
            (
                lease.contains(&self.lease),
                "lease has to lie between 300 ms and one day",
            ),
            (
                !self.poll_min.is_zero() && self.poll_min <= self.poll_max,
                "poll_interval needs a shortest pause above zero and not above the longest",
            ),
            (
                !self.publish_timeout.is_zero(),
                "publish_timeout has to be above zero",
            ),
            (
                self.backlog_interval >= Duration::from_millis(100),
                "backlog_interval has to be at least 100 ms",
            ),
        ];
        let broken: Vec<_> = rules
            .iter()
            .filter(|(holds, _)| !holds)
            .map(|(_, rule)| *rule)
            .collect();
        if broken.is_empty() {
            Ok(())
        } else {
            Err(RelayOptionsError { broken })
        }
    }
}

/// Options of a relay can't be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RelayOptionsError {
    broken: Vec<&'static str>,
}

impl fmt::Display for RelayOptionsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "the relay's options can't be used: {}",
            self.broken.join("; ")
        )
    }
}

impl std::error::Error for RelayOptionsError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn for_ever_is_a_time_that_can_be_waited() {
        let options = RelayOptions::default()
            .publish_timeout(Duration::MAX)
            .shutdown_deadline(Duration::MAX)
            .poll_interval(Duration::MAX, Duration::MAX);
        let now = tokio::time::Instant::now();
        for wait in [
            options.publish_timeout,
            options.shutdown_deadline,
            options.poll_max,
        ] {
            assert!(now.checked_add(wait).is_some());
        }
    }

    #[test]
    fn all_broken_options_are_named_at_once() {
        let options = RelayOptions::default()
            .batch_size(0)
            .max_in_flight(0)
            .lease(Duration::ZERO)
            .poll_interval(Duration::from_secs(2), Duration::from_secs(1))
            .publish_timeout(Duration::ZERO)
            .backlog_interval(Duration::ZERO)
            .max_held_bytes(0)
            .rate_limit(10, 0)
            .circuit_breaker(0);
        let text = options.check().unwrap_err().to_string();
        for name in [
            "batch_size",
            "max_in_flight",
            "lease",
            "poll_interval",
            "publish_timeout",
            "backlog_interval",
            "max_held_bytes",
            "rate_limit",
            "circuit_breaker",
        ] {
            assert!(text.contains(name), "{text}");
        }
        assert!(RelayOptions::default().max_held(99).check().is_err());
    }
}
