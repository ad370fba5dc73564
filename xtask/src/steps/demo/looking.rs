//! The looks at the example's state, which has to move.

use std::time::{Duration, Instant};

use anyhow::{Result, bail};

use super::status::Status;

const LOOK_EVERY: Duration = Duration::from_millis(500);
/// If nothing moves for so long, nothing will.
const PATIENCE: Duration = Duration::from_secs(120);

/// The looks at the example's state.
pub(super) struct Looking {
    pub(super) status: Status,
    /// When the latest began, and when the next is due.
    pub(super) begun: Instant,
    pub(super) next: Instant,
    moved: Instant,
}

impl Looking {
    /// None yet.
    pub(super) fn new(now: Instant) -> Self {
        Self {
            status: Status::default(),
            begun: now,
            next: now + LOOK_EVERY,
            moved: now,
        }
    }

    /// Takes what a look found.
    ///
    /// # Errors
    /// When nothing has moved for too long.
    pub(super) fn take(&mut self, begun: Instant, status: Option<Status>) -> Result<()> {
        let now = Instant::now();
        if let Some(status) = status {
            if status.moved() != self.status.moved() {
                self.moved = now;
            }
            (self.status, self.begun) = (status, begun);
        }
        self.next = now + LOOK_EVERY;
        if self.moved.elapsed() > PATIENCE {
            let status = &self.status;
            bail!(
                "nothing has moved for {} s: {} orders placed, {} of {} events published, {} of {} handled",
                PATIENCE.as_secs(),
                status.orders.placed,
                status.sum(|one| one.published),
                status.sum(|one| one.events),
                status.sum(|one| one.handled),
                status.sum(|one| one.to_handle),
            );
        }
        Ok(())
    }
}
