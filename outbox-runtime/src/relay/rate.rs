//! The rate limit: a token bucket, kept as the one moment at which it would be full.
//!
//! That form is the generic cell rate algorithm (ITU-T I.371, annex A). It has no fractions that
//! add up and nothing to refill, and it is pure: time comes in.

use std::time::Duration;

use tokio::time::Instant;

/// How much time's worth of messages is waited for before the next call begins, so that a call is
/// not made for each message: a twentieth of a second.
const STEPS_A_SECOND: u32 = 20;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Rate {
    pub(super) per_second: u32,
    pub(super) burst: u32,
}

impl Rate {
    pub(super) fn is_usable(self) -> bool {
        (1..=1_000_000).contains(&self.per_second) && self.burst > 0
    }
}

#[derive(Debug)]
pub(super) struct Bucket {
    /// How long a message takes to come back into the bucket.
    interval: Duration,
    burst: u32,
    step: u32,
    full_at: Instant,
}

impl Bucket {
    /// A full one.
    pub(super) fn new(rate: Rate, now: Instant) -> Self {
        Self {
            interval: Duration::from_secs(1) / rate.per_second.max(1),
            burst: rate.burst,
            step: (rate.per_second / STEPS_A_SECOND).clamp(1, rate.burst.max(1)),
            full_at: now,
        }
    }

    /// How many messages may go out now.
    pub(super) fn available(&self, now: Instant) -> usize {
        let missing = self.full_at.saturating_duration_since(now);
        let missing = missing.as_nanos().div_ceil(self.interval.as_nanos().max(1));
        let left = u128::from(self.burst).saturating_sub(missing);
        usize::try_from(left).unwrap_or(usize::MAX)
    }

    /// So many go out.
    pub(super) fn spend(&mut self, messages: usize, now: Instant) {
        let messages = u32::try_from(messages).unwrap_or(u32::MAX);
        self.full_at = self.full_at.max(now) + self.interval.saturating_mul(messages);
    }

    /// When enough may go out to be worth a call.
    pub(super) fn next(&self) -> Instant {
        let others = self
            .interval
            .saturating_mul(self.burst.saturating_sub(self.step));
        self.full_at.checked_sub(others).unwrap_or(self.full_at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bucket(per_second: u32, burst: u32, now: Instant) -> Bucket {
        Bucket::new(Rate { per_second, burst }, now)
    }

    #[test]
    fn a_burst_goes_out_at_once_and_then_comes_back_evenly() {
        let start = Instant::now();
        let mut bucket = bucket(10, 5, start);
        assert_eq!(bucket.available(start), 5);
        bucket.spend(5, start);
        for (millis, available) in [(0, 0), (99, 0), (100, 1), (450, 4), (500, 5), (9_000, 5)] {
            let now = start + Duration::from_millis(millis);
            assert_eq!(bucket.available(now), available, "after {millis} ms");
        }
        assert_eq!(bucket.next(), start + Duration::from_millis(100));
    }

    #[test]
    fn what_is_worth_a_call_is_a_twentieth_of_a_second_s() {
        let start = Instant::now();
        let mut bucket = bucket(1_000, 200, start);
        bucket.spend(200, start);
        assert_eq!(bucket.next(), start + Duration::from_millis(50));
        assert_eq!(bucket.available(bucket.next()), 50);
    }

    #[test]
    fn no_window_has_more_than_the_burst_and_the_rate() {
        let start = Instant::now();
        let mut bucket = bucket(300, 20, start);
        let mut now = start;
        let mut sent = Vec::new();
        while now < start + Duration::from_secs(10) {
            let messages = bucket.available(now).min(7);
            bucket.spend(messages, now);
            sent.push((now, messages));
            now += Duration::from_millis(3);
        }
        for window in [1_u64, 2, 5] {
            let most = 20 + 300 * window;
            for (first, &(from, _)) in sent.iter().enumerate() {
                let until = from + Duration::from_secs(window);
                let within = sent[first..].iter().take_while(|&&(at, _)| at < until);
                let messages: usize = within.map(|&(_, messages)| messages).sum();
                assert!(messages as u64 <= most, "{messages} in {window} s");
            }
        }
        let all: usize = sent.iter().map(|&(_, messages)| messages).sum();
        assert!(all >= 3_000, "the rate is used: {all}");
    }

    #[test]
    fn extremes_do_not_overflow() {
        let now = Instant::now();
        let mut slow = bucket(1, 1_000_000, now);
        slow.spend(usize::MAX, now);
        assert_eq!(slow.available(now), 0);
        let mut fast = bucket(1_000_000, 1, now);
        fast.spend(1, now);
        assert_eq!(fast.available(now + Duration::from_micros(1)), 1);
        assert_eq!(fast.next(), now + Duration::from_micros(1));
    }
}
