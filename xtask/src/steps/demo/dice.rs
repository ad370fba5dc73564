//! When which process is killed.

use std::time::{Duration, Instant};

/// How long a process or the broker stays away after it was killed, in milliseconds.
const AWAY: std::ops::Range<u64> = 100..1500;

/// Decides when somebody dies, who, and when they come back.
#[derive(Debug)]
pub(super) struct Dice {
    rng: fastrand::Rng,
    kills_left: u32,
    /// The time between two kills, on average.
    pace: Duration,
    next: Instant,
    broker_at: Option<Instant>,
}

impl Dice {
    /// So many kills spread over `window`, and one of the broker in the middle of it.
    pub(super) fn new(
        rng: fastrand::Rng,
        kills: u32,
        kills_broker: bool,
        window: Duration,
        now: Instant,
    ) -> Self {
        let pace = window / kills.max(1);
        let mut dice = Self {
            rng,
            kills_left: kills,
            pace,
            next: now,
            broker_at: kills_broker.then(|| now + window / 2),
        };
        dice.next = now + dice.gap();
        dice
    }

    /// One of so many, if it is time to kill one.
    pub(super) fn victim(&mut self, of: usize, now: Instant) -> Option<usize> {
        if self.kills_left == 0 || now < self.next || of == 0 {
            return None;
        }
        self.kills_left -= 1;
        self.next = now + self.gap();
        Some(self.rng.usize(..of))
    }

    /// Whether it is time to kill the broker; said once.
    pub(super) fn is_brokers_turn(&mut self, now: Instant) -> bool {
        self.broker_at.take_if(|at| *at <= now).is_some()
    }

    /// Whether nobody is killed any more.
    pub(super) fn is_done(&self) -> bool {
        self.kills_left == 0 && self.broker_at.is_none()
    }

    /// How long somebody who was killed stays away.
    pub(super) fn away(&mut self) -> Duration {
        Duration::from_millis(self.rng.u64(AWAY))
    }

    fn gap(&mut self) -> Duration {
        self.pace.mul_f64(0.5 + self.rng.f64())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_kills_come_and_no_more() {
        let (now, window) = (Instant::now(), Duration::from_secs(10));
        let mut dice = Dice::new(fastrand::Rng::with_seed(1), 5, true, window, now);
        let (mut kills, mut broker) = (0, 0);
        for tenth in 0..1000_u32 {
            let now = now + Duration::from_millis(100) * tenth;
            kills += usize::from(dice.victim(4, now).is_some());
            broker += usize::from(dice.is_brokers_turn(now));
        }
        assert_eq!((kills, broker), (5, 1));
        assert!(dice.is_done());
    }

    #[test]
    fn without_kills_nothing_is_left_to_wait_for() {
        let rng = fastrand::Rng::with_seed(1);
        let dice = Dice::new(rng, 0, false, Duration::ZERO, Instant::now());
        assert!(dice.is_done());
    }
}
