use std::time::Duration;

use super::failure::Failure;
use crate::backoff::Backoff;
use crate::handler::FailureKind;

/// How often a version conflict is tried again without a wait.
const CONFLICTS_AT_ONCE: u32 = 3;
/// How long is waited after further ones. Each means that another unit of work got on, so the
/// message is soon at its turn, and a long wait would only starve it.
const CONFLICT_BACKOFF: Backoff =
    Backoff::new(Duration::from_millis(5), Duration::from_millis(250));
/// From how many conflicts on a message counts as a reason for degraded health.
const CONFLICTS_TO_DEGRADE: u32 = 100;
/// From how many failed rounds on it counts as one.
const FAILURES_TO_DEGRADE: u32 = 5;

/// Counts a message's failed rounds and says when the next one is due.
pub(super) struct Retries {
    backoff: Backoff,
    conflicts: u32,
    failures: u32,
}

/// What follows a failed round.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Retry {
    pub(super) wait: Duration,
    /// The failure is permanent or goes on and on: the health has to tell it.
    pub(super) degrades_health: bool,
}

impl Retries {
    pub(super) const fn new(backoff: Backoff) -> Self {
        Self {
            backoff,
            conflicts: 0,
            failures: 0,
        }
    }

    /// How many rounds have failed.
    pub(super) const fn rounds(&self) -> u32 {
        self.conflicts.saturating_add(self.failures)
    }

    /// Takes note of a round in which all of `failures` happened.
    pub(super) fn after(&mut self, failures: &[Failure]) -> Retry {
        if failures.iter().all(|failure| failure.is_version_conflict) {
            return self.after_conflict();
        }
        self.failures = self.failures.saturating_add(1);
        let is_permanent = |failure: &Failure| failure.kind == FailureKind::Permanent;
        // As long as there are no dead letters a permanent failure is tried again too, though
        // rarely: a deployment may mend it.
        let wait = if failures.iter().all(is_permanent) {
            self.backoff.longest()
        } else {
            self.backoff.delay(self.failures)
        };
        Retry {
            wait,
            degrades_health: failures.iter().any(is_permanent)
                || self.failures >= FAILURES_TO_DEGRADE,
        }
    }

    fn after_conflict(&mut self) -> Retry {
        self.conflicts = self.conflicts.saturating_add(1);
        Retry {
            wait: match self.conflicts.checked_sub(CONFLICTS_AT_ONCE) {
                None | Some(0) => Duration::ZERO,
                Some(further) => CONFLICT_BACKOFF.delay(further),
            },
            degrades_health: self.conflicts >= CONFLICTS_TO_DEGRADE,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::handler::HandlerError;
    use crate::store::{ConflictMark, Error};

    const BACKOFF: Backoff = Backoff::new(Duration::from_secs(10), Duration::from_secs(60));

    fn transient() -> Failure {
        Failure::of_handler(&HandlerError::transient("busy"))
    }

    fn permanent() -> Failure {
        Failure::of_handler(&HandlerError::permanent("wrong"))
    }

    fn conflict() -> Failure {
        Failure::of_store(&Error::VersionConflict {
            aggregate_type: "Order",
            aggregate_id: "1".to_owned(),
            expected_version: 1,
            mark: ConflictMark,
        })
    }

    #[test]
    fn conflicts_are_retried_at_once_and_then_soon() {
        let mut retries = Retries::new(BACKOFF);
        for _ in 0..CONFLICTS_AT_ONCE {
            let retry = retries.after(&[conflict(), conflict()]);
            assert_eq!(retry.wait, Duration::ZERO);
        }
        for _ in CONFLICTS_AT_ONCE..CONFLICTS_TO_DEGRADE - 1 {
            let retry = retries.after(&[conflict()]);
            assert!(retry.wait <= CONFLICT_BACKOFF.longest());
            assert!(!retry.degrades_health);
        }
        assert!(retries.after(&[conflict()]).degrades_health);
        assert_eq!(retries.rounds(), CONFLICTS_TO_DEGRADE);
    }

    #[test]
    fn permanent_failures_wait_longest_and_are_told_at_once() {
        let mut retries = Retries::new(BACKOFF);
        let expected = Retry {
            wait: BACKOFF.longest(),
            degrades_health: true,
        };
        assert_eq!(retries.after(&[permanent()]), expected);
        let mixed = retries.after(&[permanent(), transient()]);
        assert!(mixed.wait < BACKOFF.longest());
        assert!(mixed.degrades_health);
    }

    #[test]
    fn transient_failures_are_told_when_they_go_on() {
        let mut retries = Retries::new(BACKOFF);
        let told: Vec<_> = (0..FAILURES_TO_DEGRADE)
            .map(|_| retries.after(&[transient()]).degrades_health)
            .collect();
        assert_eq!(told, [false, false, false, false, true]);
    }
}
