//! How much the relay takes on, and what it does when the broker can't keep up.

use std::time::Duration;

use super::{LONGEST, RelayOptions};
use crate::relay::backlog::Ceiling;
use crate::relay::rate::Rate;

/// # Backpressure
///
/// Bytes are those of payloads and header values as text. What comes with a message besides (ids,
/// names, times) is less than 4 KB and bounded by the limits on messages.
impl RelayOptions {
    /// At most so many bytes go to the publisher in one call; a message that is larger goes alone.
    /// 1 MiB if not set.
    pub fn batch_bytes(mut self, bytes: usize) -> Self {
        self.batch_bytes = bytes;
        self
    }

    /// At most so many bytes are with the publisher at a time, in all calls. 8 MiB if not set.
    ///
    /// A message that is larger waits until nothing else is out and goes alone; those behind it
    /// wait for it, so it is never overtaken for ever.
    pub fn max_in_flight_bytes(mut self, bytes: usize) -> Self {
        self.max_in_flight_bytes = bytes;
        self
    }

    /// At most so many bytes are in memory, those in flight included; then reading waits. 64 MiB
    /// if not set.
    ///
    /// A read takes from the log only what there is room for; while it is taken in, its rows are in
    /// memory twice. A message that is larger is read when nothing else is held, and a parked one
    /// beside what is held.
    ///
    pub fn max_held_bytes(mut self, bytes: usize) -> Self {
        self.max_held_bytes = bytes;
        self
    }

    /// At most so many messages a second go to the publisher, and up to `burst` at once after a
    /// quiet time. No limit if not set.
    ///
    /// It is this instance's own: two instances send twice as much. Whatever is offered counts,
    /// also what fails and is offered again. Aggregates take turns. Per second 1 to 1,000,000,
    /// burst at least 1.
    ///
    /// ```
    /// use outbox_runtime::relay::RelayOptions;
    ///
    /// let options = RelayOptions::default().rate_limit(500, 100);
    /// assert!(options.check().is_ok());
    /// assert!(RelayOptions::default().rate_limit(0, 1).check().is_err());
    /// ```
    pub fn rate_limit(mut self, per_second: u32, burst: u32) -> Self {
        self.rate_limit = Some(Rate { per_second, burst });
        self
    }

    /// After so many calls in a row of which the broker took nothing, the circuit opens: no call
    /// is made until a wait is over, as [`backoff`](Self::backoff) says, and then a single one, the
    /// probe. If the broker takes anything of it, all is as before; else a longer wait follows. At
    /// least 1, 5 if not set; `u32::MAX` is never.
    ///
    /// Calls count that fail for a reason that may pass, a timeout among them. Those that hold
    /// nothing but the retries of [parked](crate::relay) messages don't: they fail while the broker
    /// takes others. Nor does it open for a single aggregate, whose message may be at fault and
    /// whose own waits spare the broker.
    pub fn circuit_breaker(mut self, failed_calls: u32) -> Self {
        self.failed_calls = failed_calls;
        self
    }

    /// More pending rows than `rows`, or an oldest one that occurred longer ago than `age`, turn the
    /// health to degraded, and back once there are fewer and younger ones. 100,000 rows and 5
    /// minutes if not set.
    ///
    /// [`Backlog`](crate::store::Backlog) says what is pending; parked messages are not, they
    /// degrade the health by themselves. Rows are counted up to 1,000,000: a ceiling above that is
    /// none. Nor is `Duration::MAX`.
    ///
    /// ```
    /// use std::time::Duration;
    /// use outbox_runtime::relay::RelayOptions;
    ///
    /// let options = RelayOptions::default().backlog_ceiling(10_000, Duration::from_secs(30));
    /// let without = RelayOptions::default().backlog_ceiling(u32::MAX, Duration::MAX);
    /// # assert!(options.check().is_ok() && without.check().is_ok());
    /// ```
    pub fn backlog_ceiling(mut self, rows: u32, age: Duration) -> Self {
        self.backlog_ceiling = Ceiling { rows, age };
        self
    }

    /// How often each instance looks at the backlog, for the ceiling and for who reads the
    /// figures: one statement. 100 ms or more; 10 s if not set.
    pub fn backlog_interval(mut self, interval: Duration) -> Self {
        self.backlog_interval = interval.min(LONGEST);
        self
    }
}
