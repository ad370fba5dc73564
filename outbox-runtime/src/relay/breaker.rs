//! The circuit breaker around the broker: whether a call may begin, going by how the last ones ended.
//!
//! It is pure: time comes in. The engine says what became of each call.

use tokio::time::Instant;

use crate::backoff::Backoff;

/// Whether a relay calls its publisher, see [`RelayOptions::circuit_breaker`].
///
/// [`RelayOptions::circuit_breaker`]: super::RelayOptions::circuit_breaker
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Circuit {
    /// It does.
    #[default]
    Closed,
    /// It does not, as the last calls failed, until the next probe.
    Open {
        /// When it opened.
        since: std::time::Instant,
        /// When a single call is made to see whether the broker is back. It waits for calls that
        /// are still out, and for a message to send.
        next_probe: std::time::Instant,
    },
    /// A single call is out, the probe.
    HalfOpen {
        /// When it opened.
        since: std::time::Instant,
    },
}

/// What a call is made as.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Permit {
    Ordinary,
    /// The one call of a half-open circuit.
    Probe,
}

/// What a call that came back says of the broker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Outcome {
    /// It took something.
    Taken,
    /// It took nothing, and that may pass. `alone` if only one aggregate waits for the broker:
    /// that may be the message's own fault.
    Failed { alone: bool },
    /// Nothing: what was refused was refused for its own sake.
    Unclear,
}

/// What became of the circuit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Change {
    Opened,
    /// It was open, and the probe failed.
    StaysOpen,
    Closed,
}

#[derive(Debug)]
pub(super) struct Breaker {
    /// How many failed calls in a row open it, if they are of several aggregates.
    threshold: u32,
    backoff: Backoff,
    state: State,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Closed {
        failures: u32,
    },
    /// `waits` counts the waits since it opened, this one included.
    Open {
        since: Instant,
        probe_at: Instant,
        waits: u32,
    },
    HalfOpen {
        since: Instant,
        waits: u32,
    },
}

impl Breaker {
    pub(super) fn new(threshold: u32, backoff: Backoff) -> Self {
        Self {
            threshold,
            backoff,
            state: State::Closed { failures: 0 },
        }
    }

    /// What the next call would be made as, with so many calls out.
    pub(super) fn permit(&self, now: Instant, calls_out: usize) -> Option<Permit> {
        match self.state {
            State::Closed { .. } => Some(Permit::Ordinary),
            // Alone, so that a broker on its way up meets one call and not those from before too.
            State::Open { probe_at, .. } if probe_at <= now && calls_out == 0 => {
                Some(Permit::Probe)
            }
            State::Open { .. } | State::HalfOpen { .. } => None,
        }
    }

    /// The call is made.
    pub(super) fn began(&mut self, permit: Permit) {
        if let (Permit::Probe, State::Open { since, waits, .. }) = (permit, self.state) {
            self.state = State::HalfOpen { since, waits };
        }
    }

    /// A call came back.
    pub(super) fn ended(
        &mut self,
        permit: Permit,
        outcome: Outcome,
        now: Instant,
    ) -> Option<Change> {
        let (state, change) = match (self.state, outcome) {
            (State::Closed { .. }, Outcome::Taken) => (State::Closed { failures: 0 }, None),
            // Also by a call from before it opened: what was taken just now was taken.
            (_, Outcome::Taken) => (State::Closed { failures: 0 }, Some(Change::Closed)),
            (State::Closed { failures }, Outcome::Failed { alone }) => {
                let failures = failures.saturating_add(1);
                if alone || failures < self.threshold {
                    (State::Closed { failures }, None)
                } else {
                    (self.open(now, now, 1), Some(Change::Opened))
                }
            }
            (State::HalfOpen { since, waits }, Outcome::Failed { .. })
                if permit == Permit::Probe =>
            {
                let open = self.open(since, now, waits.saturating_add(1));
                (open, Some(Change::StaysOpen))
            }
            // It told nothing: the next one may.
            (State::HalfOpen { since, waits }, Outcome::Unclear) if permit == Permit::Probe => {
                let probe_at = now;
                let open = State::Open {
                    since,
                    probe_at,
                    waits,
                };
                (open, Some(Change::StaysOpen))
            }
            (state, Outcome::Failed { .. } | Outcome::Unclear) => (state, None),
        };
        self.state = state;
        change
    }

    /// When the next probe is due, if the circuit is open.
    pub(super) fn next_probe(&self) -> Option<Instant> {
        match self.state {
            State::Open { probe_at, .. } => Some(probe_at),
            State::Closed { .. } | State::HalfOpen { .. } => None,
        }
    }

    /// Since when it is open or half-open.
    pub(super) fn open_since(&self) -> Option<Instant> {
        match self.state {
            State::Open { since, .. } | State::HalfOpen { since, .. } => Some(since),
            State::Closed { .. } => None,
        }
    }

    pub(super) fn circuit(&self) -> Circuit {
        match self.state {
            State::Closed { .. } => Circuit::Closed,
            State::Open {
                since, probe_at, ..
            } => Circuit::Open {
                since: since.into_std(),
                next_probe: probe_at.into_std(),
            },
            State::HalfOpen { since, .. } => Circuit::HalfOpen {
                since: since.into_std(),
            },
        }
    }

    fn open(&self, since: Instant, now: Instant, waits: u32) -> State {
        State::Open {
            since,
            probe_at: now + self.backoff.delay(waits),
            waits,
        }
    }
}

#[cfg(test)]
mod tests;
