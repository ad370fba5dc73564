//! How often what failed is tried again, and what follows when that is over.

use std::time::Duration;

use crate::backoff::Backoff;

/// How long a transient failure is tried again unless told.
const MAX_AGE: Duration = Duration::from_secs(24 * 60 * 60);

/// What becomes of the later messages of an aggregate when one of its messages is dead.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum OnDead {
    /// They wait behind it, in order, until an operator has decided.
    #[default]
    Wait,
    /// They go on without it.
    GoOn,
}

/// How often, how long and at which distance a parked message is tried again.
///
/// A permanent failure is dead at once; a transient one when the attempts or the time are used up.
/// A dead message is kept with all its causes and waits for an operator.
///
/// ```
/// use std::time::Duration;
/// use outbox_runtime::backoff::Backoff;
/// use outbox_runtime::retry::{OnDead, RetryPolicy};
///
/// let policy = RetryPolicy::new()
///     .max_attempts(20)
///     .max_age(Duration::from_secs(3_600))
///     .backoff(Backoff::new(Duration::from_millis(50), Duration::from_secs(60)))
///     .on_dead(OnDead::GoOn);
/// assert_ne!(policy, RetryPolicy::default());
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RetryPolicy {
    max_attempts: Option<u32>,
    max_age: Option<Duration>,
    permanent_attempts: u32,
    backoff: Option<Backoff>,
    on_dead: OnDead,
}

/// What follows a failed attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Another attempt after the wait.
    Retry(Duration),
    /// None any more.
    Dead,
}

impl RetryPolicy {
    /// Transient failures are tried again for a day, as often as that allows; permanent ones not at
    /// all. What is behind a dead message waits.
    pub const fn new() -> Self {
        Self {
            max_attempts: None,
            max_age: Some(MAX_AGE),
            permanent_attempts: 1,
            backoff: None,
            on_dead: OnDead::Wait,
        }
    }

    /// Sets after how many failed attempts a message is dead, at least 1.
    #[must_use]
    pub fn max_attempts(mut self, attempts: u32) -> Self {
        self.max_attempts = Some(attempts.max(1));
        self
    }

    /// Sets how long after its first failure a further one makes a message dead.
    #[must_use]
    pub const fn max_age(mut self, age: Duration) -> Self {
        self.max_age = Some(age);
        self
    }

    /// Tries transient failures again however old they are. Set a number of attempts then, or
    /// watch the health: a message may be tried for ever.
    #[must_use]
    pub const fn without_max_age(mut self) -> Self {
        self.max_age = None;
        self
    }

    /// Sets after how many attempts a message is dead whose failure is permanent (1 unless told).
    #[must_use]
    pub fn permanent_attempts(mut self, attempts: u32) -> Self {
        self.permanent_attempts = attempts.max(1);
        self
    }

    /// Sets the wait before each attempt; unless told, it is that of the relay or the consumer.
    #[must_use]
    pub const fn backoff(mut self, backoff: Backoff) -> Self {
        self.backoff = Some(backoff);
        self
    }

    /// Sets what becomes of the later messages when one is dead.
    #[must_use]
    pub const fn on_dead(mut self, on_dead: OnDead) -> Self {
        self.on_dead = on_dead;
        self
    }

    /// Whether later messages of the aggregate wait behind a dead one.
    pub(crate) const fn waits_behind_dead(&self) -> bool {
        matches!(self.on_dead, OnDead::Wait)
    }

    /// What follows the attempt with that number, counted from 1, so long after the first failure.
    pub(crate) fn after(
        &self,
        is_permanent: bool,
        attempt: u32,
        age: Duration,
        default_backoff: Backoff,
    ) -> Verdict {
        let out_of_attempts = self.max_attempts.is_some_and(|most| attempt >= most)
            || (is_permanent && attempt >= self.permanent_attempts);
        if out_of_attempts || self.max_age.is_some_and(|longest| age >= longest) {
            return Verdict::Dead;
        }
        Verdict::Retry(self.backoff.unwrap_or(default_backoff).delay(attempt))
    }
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BACKOFF: Backoff = Backoff::new(Duration::from_secs(1), Duration::from_secs(60));

    fn is_dead(policy: RetryPolicy, is_permanent: bool, attempt: u32, age_s: u64) -> bool {
        let age = Duration::from_secs(age_s);
        policy.after(is_permanent, attempt, age, BACKOFF) == Verdict::Dead
    }

    #[test]
    fn transient_failures_end_by_count_or_by_age() {
        let by_age = RetryPolicy::new().max_age(Duration::from_secs(10));
        assert!(!is_dead(by_age, false, u32::MAX, 9));
        assert!(is_dead(by_age, false, 1, 10));
        let by_count = RetryPolicy::new().without_max_age().max_attempts(3);
        assert!(!is_dead(by_count, false, 2, u64::MAX));
        assert!(is_dead(by_count, false, 3, 0));
        assert!(is_dead(RetryPolicy::new().max_attempts(0), false, 1, 0));
    }

    #[test]
    fn permanent_failures_have_a_limit_of_their_own() {
        assert!(is_dead(RetryPolicy::new(), true, 1, 0));
        let patient = RetryPolicy::new().permanent_attempts(3);
        assert!(!is_dead(patient, true, 2, 0));
        assert!(is_dead(patient, true, 3, 0));
        assert!(is_dead(patient.max_attempts(2), true, 2, 0));
    }

    #[test]
    fn no_attempt_is_too_many_for_the_backoff() {
        let policy = RetryPolicy::new().without_max_age();
        let verdict = policy.after(false, u32::MAX, Duration::MAX, BACKOFF);
        let Verdict::Retry(wait) = verdict else {
            panic!("dead without a limit")
        };
        assert!(wait <= BACKOFF.longest());
        let endless = Backoff::new(Duration::MAX, Duration::MAX);
        let verdict = policy
            .backoff(endless)
            .after(false, u32::MAX, Duration::ZERO, BACKOFF);
        assert!(matches!(verdict, Verdict::Retry(_)));
    }
}
