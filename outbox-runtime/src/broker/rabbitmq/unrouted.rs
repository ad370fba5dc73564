use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use lapin::types::ShortString;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;
use tokio::time::Instant;

use crate::clock::Clock;

/// How many kinds of messages are remembered. It is more than services have; of more, those that
/// were not offered for longest are forgotten, and get their time anew.
const MOST: usize = 4_096;
/// When a kind of message was not offered for so long, it may have had a queue meanwhile: another
/// relay may have published it. It is longer than a relay waits between two attempts.
const FORGOTTEN_AFTER: Duration = Duration::from_secs(10 * 60);

/// Since when which messages have had no queue, as far as this publisher has seen.
///
/// An exchange or a queue that was deleted is made again by whoever notices first, in any process,
/// and consumers need a moment to bind. Nobody tells a publisher of it, so time has to tell.
#[derive(Clone, Default)]
pub(super) struct Unrouted(Arc<Mutex<HashMap<Kind, Seen>>>);

/// Exchange and routing key.
type Kind = (ShortString, ShortString);

struct Seen {
    first: Instant,
    last: Instant,
    /// The time of the first, as people read it.
    since: OffsetDateTime,
}

impl Unrouted {
    /// Notes that there is no queue for it. Within that time after the first such note it gives the
    /// time of the first, and after that nothing.
    pub(super) fn note(
        &self,
        exchange: &ShortString,
        routing_key: &ShortString,
        within: Duration,
    ) -> Option<String> {
        if within.is_zero() {
            return None;
        }
        let now = Instant::now();
        let mut kinds = self.lock();
        if kinds.len() >= MOST {
            make_room(&mut kinds);
        }
        let kind = (exchange.clone(), routing_key.clone());
        let seen = kinds.entry(kind).or_insert_with(|| Seen::first(now));
        if now.duration_since(seen.last) > FORGOTTEN_AFTER {
            *seen = Seen::first(now);
        }
        seen.last = now;
        let is_early = now.duration_since(seen.first) <= within;
        is_early.then(|| seen.since.format(&Rfc3339).unwrap_or_default())
    }

    /// Notes that there is a queue for it.
    pub(super) fn forget(&self, exchange: &ShortString, routing_key: &ShortString) {
        let mut kinds = self.lock();
        if !kinds.is_empty() {
            kinds.remove(&(exchange.clone(), routing_key.clone()));
        }
    }

    /// Nothing panics while it is held.
    fn lock(&self) -> MutexGuard<'_, HashMap<Kind, Seen>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Seen {
    fn first(now: Instant) -> Self {
        let since = OffsetDateTime::from(Clock::system().now());
        Self {
            first: now,
            last: now,
            // Nobody reads fractions of a second.
            since: since.replace_nanosecond(0).unwrap_or(since),
        }
    }
}

/// Forgets the half that was not seen for longest, so that it is not done for each message.
fn make_room(kinds: &mut HashMap<Kind, Seen>) {
    let mut times: Vec<_> = kinds.values().map(|seen| seen.last).collect();
    times.sort_unstable();
    if let Some(&middle) = times.get(times.len() / 2) {
        kinds.retain(|_, seen| seen.last > middle);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WITHIN: Duration = Duration::from_secs(30);

    fn is_early(unrouted: &Unrouted, routing_key: &str) -> bool {
        unrouted
            .note(&"x".into(), &routing_key.into(), WITHIN)
            .is_some()
    }

    async fn wait(seconds: u64) {
        tokio::time::advance(Duration::from_secs(seconds)).await;
    }

    #[tokio::test(start_paused = true)]
    async fn time_counts_from_the_first_without_a_success_between() {
        let unrouted = Unrouted::default();
        assert!(is_early(&unrouted, "0.Paid"));
        wait(20).await;
        assert!(is_early(&unrouted, "0.Paid"));
        assert!(is_early(&unrouted, "1.Paid"));
        wait(20).await;
        assert!(!is_early(&unrouted, "0.Paid"));
        assert!(is_early(&unrouted, "1.Paid"));
        unrouted.forget(&"x".into(), &"0.Paid".into());
        assert!(is_early(&unrouted, "0.Paid"));
        wait(20).await;
        assert!(!is_early(&unrouted, "1.Paid"));
        // Another exchange's.
        assert!(
            unrouted
                .note(&"y".into(), &"1.Paid".into(), WITHIN)
                .is_some()
        );
    }

    #[tokio::test(start_paused = true)]
    async fn without_time_there_is_none() {
        let unrouted = Unrouted::default();
        let none = unrouted.note(&"x".into(), &"0.Paid".into(), Duration::ZERO);
        assert_eq!(none, None);
    }

    #[tokio::test(start_paused = true)]
    async fn what_was_not_offered_for_long_gets_its_time_anew() {
        let unrouted = Unrouted::default();
        assert!(is_early(&unrouted, "0.Paid"));
        wait(5 * 60).await;
        assert!(!is_early(&unrouted, "0.Paid"));
        wait(11 * 60).await;
        assert!(is_early(&unrouted, "0.Paid"));
    }

    #[tokio::test(start_paused = true)]
    async fn the_number_of_kinds_is_bounded() {
        let unrouted = Unrouted::default();
        assert!(is_early(&unrouted, "first"));
        wait(20).await;
        for n in 0..3 * MOST {
            assert!(is_early(&unrouted, &n.to_string()));
            assert!(unrouted.lock().len() <= MOST);
        }
        assert!(!unrouted.lock().contains_key(&("x".into(), "first".into())));
    }
}
