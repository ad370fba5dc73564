//! How long to wait between attempts.

use std::hash::{BuildHasher, RandomState};
use std::time::Duration;

/// Beyond any use, and below what an `Instant` can be moved by.
const LONGEST_DELAY: Duration = Duration::from_secs(365 * 24 * 3600);

/// Exponential backoff with full jitter: a random wait between nothing and a ceiling that doubles
/// with each failed attempt.
///
/// Full jitter spreads the attempts of many clients best when a broker or database comes back.
///
/// ```
/// use std::time::Duration;
/// use outbox_runtime::backoff::Backoff;
///
/// let backoff = Backoff::new(Duration::from_millis(100), Duration::from_secs(60));
/// assert_eq!(backoff.ceiling(1), Duration::from_millis(100));
/// assert_eq!(backoff.ceiling(3), Duration::from_millis(400));
/// assert_eq!(backoff.ceiling(99), Duration::from_secs(60));
/// assert!(backoff.delay(3) <= Duration::from_millis(400));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Backoff {
    first: Duration,
    longest: Duration,
}

impl Backoff {
    /// Waits up to `first` after the first failure and never more than `longest`.
    pub const fn new(first: Duration, longest: Duration) -> Self {
        Self { first, longest }
    }

    /// The longest wait.
    pub const fn longest(&self) -> Duration {
        self.longest
    }

    /// The most that is waited after so many failed attempts, counted from 1.
    pub fn ceiling(&self, failed_attempts: u32) -> Duration {
        let doublings = failed_attempts.saturating_sub(1).min(31);
        self.first.saturating_mul(1 << doublings).min(self.longest)
    }

    /// A random wait up to the ceiling.
    pub fn delay(&self, failed_attempts: u32) -> Duration {
        let ceiling = self.ceiling(failed_attempts).min(LONGEST_DELAY);
        Duration::try_from_secs_f64(ceiling.as_secs_f64() * random()).unwrap_or(ceiling)
    }
}

/// 100 ms doubling to 30 s.
impl Default for Backoff {
    fn default() -> Self {
        Self::new(Duration::from_millis(100), Duration::from_secs(30))
    }
}

/// A number from 0 to 1. The standard library's hasher keys are random enough to spread attempts.
fn random() -> f64 {
    let bits = RandomState::new().hash_one(());
    // 53 bits fill a float's mantissa exactly.
    (bits >> 11) as f64 / (1_u64 << 53) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_are_spread_over_the_whole_range() {
        let backoff = Backoff::new(Duration::from_secs(1), Duration::from_secs(8));
        let delays: Vec<_> = (0..1000).map(|_| backoff.delay(4)).collect();
        assert!(delays.iter().all(|delay| *delay <= Duration::from_secs(8)));
        assert!(delays.iter().any(|delay| *delay < Duration::from_secs(2)));
        assert!(delays.iter().any(|delay| *delay > Duration::from_secs(6)));
    }

    #[test]
    fn never_overflows() {
        let backoff = Backoff::new(Duration::MAX, Duration::MAX);
        assert_eq!(backoff.ceiling(u32::MAX), Duration::MAX);
    }
}
