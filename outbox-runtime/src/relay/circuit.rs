//! The engine's side of the circuit breaker: what calls tell it, and what it tells others.

use std::time::Duration;

use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;
use tokio::time::Instant;

use super::breaker::{Change, Outcome, Permit};
use super::engine::Engine;
use super::publishing::{Key, Published};
use crate::store::Backend;

/// The part of health that speaks of the circuit.
const CIRCUIT: &str = "the relay's circuit to the broker";

impl<DB: Backend> Engine<DB> {
    /// What a call says of the broker. To be asked before its messages are taken back.
    pub(super) fn outcome(&self, permit: Permit, published: &[Published]) -> Outcome {
        if published.iter().any(|one| !one.taken.is_empty()) {
            return Outcome::Taken;
        }
        // Parked messages have failed while the broker took others, so their retries tell nothing,
        // unless there is nothing else to probe with.
        let tells = |one: &&Published| permit == Permit::Probe || !self.parked.holds(&one.key);
        let failed = |one: &Published| one.error.as_ref().is_some_and(|error| error.is_transient());
        if !published.iter().filter(tells).any(failed) {
            return Outcome::Unclear;
        }
        let in_call = published.iter().map(|one| &one.key);
        let waiting = self.lanes.failing().chain(in_call);
        let mut suspects = waiting.filter(|key| !self.parked.holds(key));
        let first: Option<&Key> = suspects.next();
        Outcome::Failed {
            alone: suspects.all(|other| Some(other) == first),
        }
    }

    /// A call came back.
    pub(super) fn tell_breaker(&mut self, permit: Permit, outcome: Outcome, now: Instant) {
        match self.breaker.ended(permit, outcome, now) {
            Some(Change::Opened) => {
                self.counters.circuit_opened();
                tracing::warn!("the circuit to the broker opens: calls fail one after another");
                self.report_open(now);
            }
            Some(Change::StaysOpen) => {
                tracing::debug!(?outcome, "a probe of the broker ended");
                self.report_open(now);
            }
            Some(Change::Closed) => {
                tracing::info!("the circuit to the broker is closed: it takes messages");
                self.health.recover(CIRCUIT);
            }
            None => {}
        }
        self.counters.circuit(self.breaker.circuit());
    }

    fn report_open(&self, now: Instant) {
        let (Some(since), Some(next)) = (self.breaker.open_since(), self.breaker.next_probe())
        else {
            return;
        };
        let time = OffsetDateTime::from(self.outbox.inner.clock.now());
        let text = format!(
            "the circuit to the broker is open since {}, as calls failed one after another; the \
             next probe is due at {}",
            as_text(time.checked_sub(within_range(now - since))),
            as_text(time.checked_add(within_range(next - now))),
        );
        self.health.degrade(CIRCUIT, text);
    }
}

fn within_range(wait: Duration) -> time::Duration {
    wait.try_into().unwrap_or(time::Duration::MAX)
}

/// To the second, in UTC.
fn as_text(time: Option<OffsetDateTime>) -> String {
    time.and_then(|time| time.replace_nanosecond(0).ok())
        .and_then(|time| time.format(&Rfc3339).ok())
        .unwrap_or_else(|| "a time beyond the calendar".to_owned())
}
