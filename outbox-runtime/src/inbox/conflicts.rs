use std::time::Duration;

use super::failure::Failure;
use crate::backoff::Backoff;

/// How often a version conflict is tried again without a wait.
const AT_ONCE: u32 = 3;
/// How often it is tried again in place at all; after that the message is parked.
const IN_PLACE: u32 = 20;
/// How long is waited between. Each conflict means that another unit of work got on, so the message
/// is soon at its turn, and a long wait would only starve it.
const BACKOFF: Backoff = Backoff::new(Duration::from_millis(5), Duration::from_millis(250));

/// Counts the version conflicts of one message in one consumer.
#[derive(Debug, Default)]
pub(super) struct Conflicts(u32);

impl Conflicts {
    /// How long to wait before the message is tried again in place; `None` for a failure that is no
    /// conflict, and for one conflict too many.
    pub(super) fn after(&mut self, failure: &Failure) -> Option<Duration> {
        if !failure.is_version_conflict || self.0 >= IN_PLACE {
            return None;
        }
        self.0 += 1;
        Some(match self.0.checked_sub(AT_ONCE) {
            None | Some(0) => Duration::ZERO,
            Some(further) => BACKOFF.delay(further),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::handler::HandlerError;
    use crate::store::{ConflictMark, Error};

    fn conflict() -> Failure {
        Failure::of_store(&Error::VersionConflict {
            aggregate_type: "Order",
            aggregate_id: "1".to_owned(),
            expected_version: 1,
            mark: ConflictMark,
        })
    }

    #[test]
    fn conflicts_are_retried_at_once_then_soon_and_then_parked() {
        let mut conflicts = Conflicts::default();
        for _ in 0..AT_ONCE {
            assert_eq!(conflicts.after(&conflict()), Some(Duration::ZERO));
        }
        for _ in AT_ONCE..IN_PLACE {
            let wait = conflicts.after(&conflict());
            assert!(wait.is_some_and(|wait| wait <= BACKOFF.longest()));
        }
        assert_eq!(conflicts.after(&conflict()), None);
    }

    #[test]
    fn other_failures_are_not_retried_in_place() {
        let failure = Failure::of_handler(&HandlerError::transient("busy"));
        assert_eq!(Conflicts::default().after(&failure), None);
    }
}
