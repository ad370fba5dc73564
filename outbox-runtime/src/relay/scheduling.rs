use std::time::Duration;

use tokio::time::Instant;

use super::engine::Engine;
use crate::store::{Backend, Error, Moved};

/// How many events one statement moves.
const CHUNK: u16 = 1_000;
/// After so long, events are looked at again that were due and could not be moved, because
/// somebody was about to cancel them or another relay moved them.
const LOCKED: Duration = Duration::from_secs(1);

impl<DB: Backend> Engine<DB> {
    /// Moves the scheduled events that are due into the log, where they are events as any other.
    ///
    /// The time of the next one is remembered. Only a signal that one was scheduled in this
    /// process, or the longest poll pause for those of other processes, asks for it again.
    pub(super) async fn move_due(&mut self) {
        self.schedules.mark_unchanged();
        match self.look_and_move().await {
            Ok((next_due, moved)) => {
                let metrics = self.outbox.metrics();
                metrics.scheduled_moved(moved.taken, moved.stored);
                if moved.stored > 0 {
                    tracing::debug!(events = moved.stored, "scheduled events are due");
                    self.read_soon();
                    // Their shards may be another instance's.
                    self.outbox.wake_for_events();
                }
                if moved.stored < moved.taken {
                    tracing::warn!(
                        events = moved.taken - moved.stored,
                        "scheduled events are dropped, as events with their business keys were stored meanwhile"
                    );
                }
                let pause = self.pause_until_due(next_due, moved);
                self.scheduling
                    .succeeded(Instant::now() + pause, &self.health);
            }
            Err(error) => self
                .scheduling
                .failed(&error, self.options.backoff, &self.health),
        }
    }

    async fn look_and_move(&self) -> Result<(Option<i64>, Moved), Error> {
        let doing = "moving scheduled events that are due";
        let queries = &self.outbox.inner.queries;
        let look_and_move = async {
            let mut connection = self.outbox.connection().await?;
            let next_due = DB::next_due(&mut connection, queries)
                .await
                .map_err(Error::database("looking for scheduled events"))?;
            drop(connection);
            if next_due.is_none_or(|millis| millis > 0) {
                return Ok((next_due, Moved::default()));
            }
            let mut writing = self.outbox.writing().await?;
            let moved = DB::move_due(writing.connection(), queries, i64::from(CHUNK))
                .await
                .map_err(Error::database(doing))?;
            writing.finish().await?;
            Ok((next_due, moved))
        };
        self.in_time(doing, look_and_move).await
    }

    fn pause_until_due(&self, next_due: Option<i64>, moved: Moved) -> Duration {
        if moved.taken > 0 {
            // More may be due, and when the next one is was not asked yet.
            return Duration::ZERO;
        }
        let pause = match next_due.map(u64::try_from) {
            Some(Ok(millis @ 1..)) => Duration::from_millis(millis),
            Some(_) => LOCKED,
            None => self.options.poll_max,
        };
        pause.min(self.options.poll_max)
    }
}
