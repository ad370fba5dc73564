use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::time::Duration;

use serde::Serialize;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::{Health, HealthHandle, shown};

/// Work that takes longer than this does not come to its end by itself, unless told otherwise.
const STUCK_AFTER: Duration = Duration::from_secs(300);

/// What the readiness says of the database.
pub(crate) const DATABASE: &str = "database";

/// Whether the process can make progress, or a restart would help.
///
/// What other systems do never makes it stuck: with the broker or the database down, a restart
/// would help nobody. Only when the database answers and a piece of work with it still has no end,
/// after five minutes unless [`App::stuck_after`](crate::app::App::stuck_after) says otherwise, does
/// that count. A handler of yours that takes long does not.
///
/// ```
/// use outbox_runtime::health::{HealthHandle, Liveness};
///
/// assert_eq!(HealthHandle::new().liveness(), Liveness::Alive);
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "status", rename_all = "snake_case")]
pub enum Liveness {
    /// Every part comes to rest between its pieces of work.
    Alive,
    /// A part hangs, or has ended although nobody stopped it.
    Stuck {
        /// Which, and since when; at most 11 sentences of up to 500 characters.
        reasons: Vec<String>,
    },
}

/// Whether the process can do what it is there for: take writes, and the requests behind them.
///
/// A broker that is down makes it [`Degraded`](Self::Degraded) and no more. Writes go to the
/// database and wait in the outbox, so to take the service out of rotation would only turn an
/// outage of the broker into one of the service, on all its instances at once.
///
/// ```
/// use outbox_runtime::health::{HealthHandle, Readiness};
///
/// let readiness = HealthHandle::new().readiness();
/// assert!(readiness.is_ready());
/// assert_eq!(readiness, Readiness::Ready);
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "status", rename_all = "snake_case")]
pub enum Readiness {
    /// It is.
    Ready,
    /// It is, and something waits: see [`Health`].
    Degraded {
        /// What waits, and why; at most 11 sentences of up to 500 characters.
        reasons: Vec<String>,
    },
    /// It has not started yet, its database does not answer, or it is stopping.
    NotReady {
        /// Why; at most 11 sentences of up to 500 characters.
        reasons: Vec<String>,
    },
}

impl Liveness {
    /// Whether no restart is needed.
    pub const fn is_alive(&self) -> bool {
        matches!(self, Self::Alive)
    }
}

impl Readiness {
    /// Whether requests may come.
    pub const fn is_ready(&self) -> bool {
        !matches!(self, Self::NotReady { .. })
    }
}

impl fmt::Display for Liveness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Alive => f.write_str("alive"),
            Self::Stuck { reasons } => write!(f, "stuck: {}", reasons.join("; ")),
        }
    }
}

impl fmt::Display for Readiness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ready => f.write_str("ready"),
            Self::Degraded { reasons } => write!(f, "degraded: {}", reasons.join("; ")),
            Self::NotReady { reasons } => write!(f, "not ready: {}", reasons.join("; ")),
        }
    }
}

/// What the probes know of the parts.
#[derive(Debug, Default)]
pub(super) struct Parts {
    /// What keeps requests out, by what it is about.
    unready: BTreeMap<&'static str, String>,
    /// What happened at least once.
    milestones: BTreeSet<Milestone>,
    /// Since when a part is at one piece of work; several of a name may be.
    at_work: BTreeMap<u64, (&'static str, Instant)>,
    next_work: u64,
    /// Parts that ended although nobody stopped them.
    ended: BTreeSet<&'static str>,
    stuck_after: Option<Duration>,
}

/// A step of the start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Milestone {
    /// The consumers are subscribed.
    Subscribed,
    /// The relay shares the shards with the others.
    Relaying,
}

/// A piece of work; dropping it says that it is over.
#[must_use]
pub(crate) struct AtWork {
    health: HealthHandle,
    number: u64,
}

/// A part that has to run; dropping it before `stop` is cancelled says that it ended.
#[must_use]
pub(crate) struct Running {
    health: HealthHandle,
    part: &'static str,
    stop: CancellationToken,
}

impl HealthHandle {
    /// Whether a restart of the process would help. It answers at once.
    pub fn liveness(&self) -> Liveness {
        let parts = self.parts.borrow();
        let limit = parts.stuck_after.unwrap_or(STUCK_AFTER);
        let now = Instant::now();
        let ended = parts
            .ended
            .iter()
            .map(|part| format!("the {part} has ended and is not started again"));
        let database_answers = !parts.unready.contains_key(DATABASE);
        let hanging = parts.at_work.values().filter_map(|&(what, since)| {
            let lasts = now.duration_since(since);
            (database_answers && lasts > limit)
                .then(|| format!("{what} hangs since {} s", lasts.as_secs()))
        });
        let reasons: Vec<_> = ended.chain(hanging).collect();
        if reasons.is_empty() {
            return Liveness::Alive;
        }
        Liveness::Stuck {
            reasons: shown(reasons),
        }
    }

    /// Whether requests may come. It answers at once, from what the parts have last found.
    pub fn readiness(&self) -> Readiness {
        let unready: Vec<_> = self.parts.borrow().unready.values().cloned().collect();
        if !unready.is_empty() {
            return Readiness::NotReady {
                reasons: shown(unready),
            };
        }
        match self.get() {
            Health::Healthy => Readiness::Ready,
            Health::Degraded { reasons } => Readiness::Degraded {
                reasons: shown(reasons),
            },
        }
    }

    /// Waits until the readiness is as `wanted` says, and returns it.
    ///
    /// # Cancel safety
    /// Dropping the call has no effect.
    pub async fn wait_for_readiness(
        &self,
        mut wanted: impl FnMut(&Readiness) -> bool,
    ) -> Readiness {
        let mut parts = self.parts.subscribe();
        let mut reasons = self.reasons.subscribe();
        loop {
            parts.mark_unchanged();
            reasons.mark_unchanged();
            let readiness = self.readiness();
            if wanted(&readiness) {
                return readiness;
            }
            tokio::select! {
                // The handle itself keeps both channels open.
                _ = parts.changed() => {}
                _ = reasons.changed() => {}
            }
        }
    }

    /// Sets after how long a piece of work counts as hanging.
    pub(crate) fn stuck_after(&self, limit: Duration) {
        self.parts
            .send_modify(|parts| parts.stuck_after = Some(limit));
    }

    /// Keeps requests out.
    pub(crate) fn make_unready(&self, about: &'static str, reason: impl Into<String>) {
        let reason = reason.into();
        self.parts.send_if_modified(|parts| {
            parts.unready.insert(about, reason.clone()).as_ref() != Some(&reason)
        });
    }

    /// Withdraws what kept requests out.
    pub(crate) fn make_ready(&self, about: &'static str) {
        self.parts
            .send_if_modified(|parts| parts.unready.remove(about).is_some());
    }

    /// Says that a step of the start is done.
    pub(crate) fn reach(&self, milestone: Milestone) {
        self.parts
            .send_if_modified(|parts| parts.milestones.insert(milestone));
    }

    /// Whether all of these steps are done.
    pub(crate) fn has_reached(&self, milestones: &[Milestone]) -> bool {
        let parts = self.parts.borrow();
        milestones
            .iter()
            .all(|milestone| parts.milestones.contains(milestone))
    }

    /// Waits until all of these steps are done.
    pub(crate) async fn reached(&self, milestones: &[Milestone]) {
        let mut parts = self.parts.subscribe();
        // The handle itself keeps the channel open.
        let _ = parts
            .wait_for(|parts| {
                milestones
                    .iter()
                    .all(|milestone| parts.milestones.contains(milestone))
            })
            .await;
    }

    /// Says that a piece of work begins, as the beginning of a sentence.
    pub(crate) fn at_work(&self, what: &'static str) -> AtWork {
        let mut number = 0;
        // Nobody waits for this to change.
        self.parts.send_if_modified(|parts| {
            number = parts.next_work;
            parts.next_work += 1;
            parts.at_work.insert(number, (what, Instant::now()));
            false
        });
        AtWork {
            health: self.clone(),
            number,
        }
    }

    /// Says that a part has to run from now on, until `stop`.
    pub(crate) fn running(&self, part: &'static str, stop: CancellationToken) -> Running {
        Running {
            health: self.clone(),
            part,
            stop,
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if !self.stop.is_cancelled() {
            self.health
                .parts
                .send_if_modified(|parts| parts.ended.insert(self.part));
        }
    }
}

impl Drop for AtWork {
    fn drop(&mut self) {
        self.health.parts.send_if_modified(|parts| {
            parts.at_work.remove(&self.number);
            false
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn work_that_does_not_end_makes_it_stuck_until_it_ends() {
        let health = HealthHandle::new();
        let short = health.at_work("the relay");
        let long = health.at_work("the cleaner");
        tokio::time::advance(STUCK_AFTER).await;
        drop(short);
        let _other = health.at_work("the relay");
        assert!(health.liveness().is_alive());
        tokio::time::advance(Duration::from_secs(1)).await;
        let stuck = health.liveness();
        assert_eq!(stuck.to_string(), "stuck: the cleaner hangs since 301 s");
        assert_eq!(
            serde_json::to_value(&stuck).unwrap(),
            serde_json::json!({"status": "stuck", "reasons": ["the cleaner hangs since 301 s"]})
        );
        health.make_unready(DATABASE, "no answer");
        assert!(health.liveness().is_alive(), "the database's fault");
        health.make_ready(DATABASE);
        drop(long);
        assert!(health.liveness().is_alive());
        assert!(health.readiness().is_ready());
        tokio::time::advance(Duration::from_secs(10)).await;
        health.stuck_after(Duration::from_secs(10));
        assert!(!health.liveness().is_alive(), "a limit of its own");
    }

    #[test]
    fn a_part_that_ends_untold_makes_it_stuck() {
        let health = HealthHandle::new();
        let stop = CancellationToken::new();
        let running = health.running("relay", stop.clone());
        assert_eq!(health.liveness(), Liveness::Alive);
        drop(running);
        stop.cancel();
        drop(health.running("consumer", stop));
        assert_eq!(
            health.liveness().to_string(),
            "stuck: the relay has ended and is not started again"
        );
        assert!(health.readiness().is_ready(), "writes are still taken");
    }

    #[test]
    fn trouble_degrades_and_only_what_keeps_requests_out_makes_unready() {
        let health = HealthHandle::new();
        health.degrade("relay", "the broker is down");
        let readiness = health.readiness();
        assert!(readiness.is_ready());
        assert_eq!(readiness.to_string(), "degraded: the broker is down");
        health.make_unready("database", "no answer");
        let readiness = health.readiness();
        assert!(!readiness.is_ready());
        assert_eq!(
            serde_json::to_value(&readiness).unwrap(),
            serde_json::json!({"status": "not_ready", "reasons": ["no answer"]})
        );
        health.make_ready("database");
        health.recover("relay");
        assert_eq!(
            serde_json::to_string(&health.readiness()).unwrap(),
            r#"{"status":"ready"}"#
        );
    }

    #[test]
    fn answers_do_not_grow_with_the_trouble() {
        let health = HealthHandle::new();
        for n in 0..400 {
            health.degrade(
                &format!("part {n:03}"),
                format!("{n}: {}\u{7}", "x".repeat(9_000)),
            );
        }
        let Readiness::Degraded { reasons } = health.readiness() else {
            panic!("degraded")
        };
        assert_eq!(reasons.len(), 11);
        assert_eq!(reasons[10], "and 390 more");
        assert!(reasons.iter().all(|reason| reason.chars().count() <= 500));
        let text = health.readiness().to_string();
        assert!(!text.contains('\u{7}'), "no control characters");
    }

    #[tokio::test]
    async fn milestones_and_readiness_can_be_waited_for() {
        let health = HealthHandle::new();
        let both = [Milestone::Subscribed, Milestone::Relaying];
        health.make_unready("app", "not started");
        let waiting = tokio::spawn({
            let health = health.clone();
            async move {
                health.reached(&both).await;
                health.wait_for_readiness(Readiness::is_ready).await
            }
        });
        tokio::task::yield_now().await;
        health.reach(Milestone::Subscribed);
        assert!(!health.has_reached(&both));
        health.reach(Milestone::Relaying);
        tokio::task::yield_now().await;
        assert!(!waiting.is_finished());
        health.make_ready("app");
        assert!(matches!(waiting.await, Ok(Readiness::Ready)));
    }
}
