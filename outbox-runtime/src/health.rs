//! Whether the relay and the consumers do their work, and if not, why.
//!
//! [`Health`] is for people and alerts: it says all that waits. [`Readiness`] and [`Liveness`] are
//! for whoever sends requests to the process and whoever restarts it; most of what degrades the
//! health is no reason for either.
//!
//! Reasons may name hosts and causes, never a payload. Show them to operators and not to the world.

mod probes;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use tokio::sync::watch;

use self::probes::Parts;

pub(crate) use probes::{DATABASE, Milestone};
pub use probes::{Liveness, Readiness};

/// How many reasons a text has room for: hundreds of messages may fail at a time.
const SHOWN: usize = 10;
/// How many characters of a reason the probes show.
const REASON_CHARS: usize = 500;

/// The state of a running app.
///
/// Degraded does not mean lost: writes go on and nothing is dropped, but something waits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Health {
    /// Everything runs.
    Healthy,
    /// Something waits for a broker, a database or an operator.
    Degraded {
        /// What, and why; one sentence each.
        reasons: Vec<String>,
    },
}

impl Health {
    /// Whether everything runs.
    pub const fn is_healthy(&self) -> bool {
        matches!(self, Self::Healthy)
    }
}

/// Shows the first ten reasons, and how many more there are.
impl fmt::Display for Health {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self::Degraded { reasons } = self else {
            return f.write_str("healthy");
        };
        let shown: Vec<_> = reasons.iter().take(SHOWN).map(String::as_str).collect();
        write!(f, "degraded: {}", shown.join("; "))?;
        match reasons.len().saturating_sub(SHOWN) {
            0 => Ok(()),
            more => write!(f, "; and {more} more"),
        }
    }
}

/// Reads, and waits for, the health of a relay, a consumer or a whole app. Clones share one state.
///
/// ```
/// use outbox_runtime::health::HealthHandle;
///
/// let health = HealthHandle::new();
/// assert!(health.get().is_healthy());
/// ```
#[derive(Clone)]
pub struct HealthHandle {
    reasons: Arc<watch::Sender<BTreeMap<String, String>>>,
    parts: Arc<watch::Sender<Parts>>,
}

impl HealthHandle {
    /// A handle that says healthy until a part it is given to says otherwise.
    pub fn new() -> Self {
        Self {
            reasons: Arc::new(watch::Sender::new(BTreeMap::new())),
            parts: Arc::default(),
        }
    }

    /// The health at this moment.
    pub fn get(&self) -> Health {
        let reasons: Vec<String> = self.reasons.borrow().values().cloned().collect();
        if reasons.is_empty() {
            Health::Healthy
        } else {
            Health::Degraded { reasons }
        }
    }

    /// Waits until the health is as `wanted` says, and returns it.
    ///
    /// # Cancel safety
    /// Dropping the call has no effect.
    pub async fn wait_for(&self, mut wanted: impl FnMut(&Health) -> bool) -> Health {
        let mut changes = self.reasons.subscribe();
        loop {
            changes.mark_unchanged();
            let health = self.get();
            if wanted(&health) || changes.changed().await.is_err() {
                return health;
            }
        }
    }

    /// Sets the reason why `part` can't do its work.
    pub(crate) fn degrade(&self, part: &str, reason: impl Into<String>) {
        let reason = reason.into();
        self.reasons.send_if_modified(|reasons| {
            reasons.insert(part.to_owned(), reason.clone()).as_ref() != Some(&reason)
        });
    }

    /// Withdraws the reason of `part`, if it gave one.
    pub(crate) fn recover(&self, part: &str) {
        self.reasons
            .send_if_modified(|reasons| reasons.remove(part).is_some());
    }
}

impl Default for HealthHandle {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for HealthHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("HealthHandle").field(&self.get()).finish()
    }
}

/// The first reasons, each on one line and not too long, and how many more there are.
fn shown(reasons: Vec<String>) -> Vec<String> {
    let more = reasons.len().saturating_sub(SHOWN);
    let mut shown: Vec<String> = reasons
        .into_iter()
        .take(SHOWN)
        .map(|reason| {
            let clean = |c: char| if c.is_control() { ' ' } else { c };
            reason.chars().take(REASON_CHARS).map(clean).collect()
        })
        .collect();
    if more > 0 {
        shown.push(format!("and {more} more"));
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_does_not_grow_with_the_reasons() {
        let reasons = |n: usize| Health::Degraded {
            reasons: (0..n).map(|n| format!("r{n}")).collect(),
        };
        assert_eq!(reasons(2).to_string(), "degraded: r0; r1");
        let many = reasons(400).to_string();
        assert!(many.ends_with("r9; and 390 more"), "{many}");
    }

    #[test]
    fn keeps_one_reason_for_each_part() {
        let health = HealthHandle::new();
        health.degrade("relay", "the broker is down");
        health.degrade("relay", "the broker is still down");
        health.degrade("consumer", "the database is down");
        assert_eq!(
            health.get().to_string(),
            "degraded: the database is down; the broker is still down"
        );
        health.recover("relay");
        health.recover("relay");
        health.recover("consumer");
        assert_eq!(health.get(), Health::Healthy);
    }

    #[tokio::test]
    async fn wakes_who_waits_for_a_change() {
        let health = HealthHandle::new();
        let waiting = tokio::spawn({
            let health = health.clone();
            async move { health.wait_for(|health| !health.is_healthy()).await }
        });
        tokio::task::yield_now().await;
        health.degrade("relay", "down");
        let seen = waiting.await.map(|health| health.is_healthy());
        assert!(matches!(seen, Ok(false)));
    }
}
