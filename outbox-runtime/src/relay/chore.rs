use tokio::time::Instant;

use crate::backoff::Backoff;
use crate::error_text;
use crate::health::HealthHandle;
use crate::store::Error;

/// Something that is done again and again with the database, and later when it fails.
#[derive(Debug)]
pub(super) struct Chore {
    /// What its failure means, as the beginning of a sentence.
    trouble: &'static str,
    failures: u32,
    due: Instant,
}

impl Chore {
    pub(super) fn new(trouble: &'static str, due: Instant) -> Self {
        Self {
            trouble,
            failures: 0,
            due,
        }
    }

    pub(super) fn is_due(&self) -> bool {
        self.due <= Instant::now()
    }

    pub(super) fn is_failing(&self) -> bool {
        self.failures > 0
    }

    pub(super) fn due(&self) -> Instant {
        self.due
    }

    /// Makes it due, unless it waits after a failure.
    pub(super) fn hasten(&mut self) {
        if self.failures == 0 {
            self.due = Instant::now();
        }
    }

    /// Makes it due by `latest`.
    pub(super) fn no_later_than(&mut self, latest: Instant) {
        self.due = self.due.min(latest);
    }

    pub(super) fn succeeded(&mut self, next: Instant, health: &HealthHandle) {
        if self.failures > 0 {
            tracing::info!(attempts = self.failures, "over: {}", self.trouble);
            health.recover(self.trouble);
        }
        self.failures = 0;
        self.due = next;
    }

    pub(super) fn failed(&mut self, error: &Error, backoff: Backoff, health: &HealthHandle) {
        self.failures = self.failures.saturating_add(1);
        self.due = Instant::now() + backoff.delay(self.failures);
        let reason = error_text::of_error(error);
        tracing::warn!(attempts = self.failures, %reason, "{}", self.trouble);
        health.degrade(self.trouble, format!("{}: {reason}", self.trouble));
    }
}
