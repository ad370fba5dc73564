use tokio::time::Instant;

use crate::broker::PublishError;
use crate::error_text;
use crate::relay::engine::Engine;
use crate::relay::publishing::{Item, Key};
use crate::retry::Verdict;
use crate::store::{Backend, FailedRow, ParkedFailure};

/// The circumstances of a failed attempt.
pub(in crate::relay) struct Attempt {
    /// Whether earlier messages of the key were taken by the same call.
    pub(in crate::relay) began_well: bool,
    /// Whether the broker takes messages, as far as is known.
    pub(in crate::relay) broker_takes: bool,
    pub(in crate::relay) now: Instant,
}

impl<DB: Backend> Engine<DB> {
    /// Takes back what was not taken of a key: to try it again in place, or to park it.
    pub(in crate::relay) fn take_back(
        &mut self,
        key: &Key,
        mut rest: Vec<Item>,
        error: &PublishError,
        attempt: &Attempt,
    ) {
        let Some(head) = rest.first() else {
            return self.lanes.done(key.clone());
        };
        // What comes back for an earlier epoch is not ours to judge.
        let is_ours = self.shards.epoch(key.shard) == Some(head.epoch);
        if is_ours {
            self.outbox.metrics().publish_failed(error.is_transient());
        }
        if !is_ours || error.is_transient() && !self.others_get_through(key, attempt) {
            if is_ours {
                self.outbox.metrics().publish_retried();
            }
            self.lanes
                .fail(key, rest, attempt.now, &self.options.backoff);
            return;
        }
        let head = rest.remove(0);
        let (attempts, failure, goes_on) = self.judge(&head, error);
        let is_parked = self.parked.holds(key);
        let alone = goes_on.then(|| Key::alone(key.shard, head.id));
        if is_parked {
            // What was read behind it is in the table, too.
            self.lanes.remove(key);
            let row = FailedRow {
                id: head.id,
                attempts,
                failure,
                goes_to: alone
                    .filter(|alone| alone != key)
                    .map(|key| key.lane.to_string()),
            };
            self.parked.failed(key, head.epoch, row);
        } else if let Some(alone) = alone {
            self.parked.park(alone, head.epoch, head.id, failure);
            self.counters.parked(1);
            self.lanes.go_on(key, rest);
        } else {
            self.parked.park(key.clone(), head.epoch, head.id, failure);
            let behind = self.lanes.remove(key);
            self.counters.parked(1 + rest.len() + behind.len());
            for item in rest.into_iter().chain(behind) {
                self.parked.wait_behind(key.clone(), item.epoch, item.id);
            }
        }
        self.parking.hasten();
    }

    /// Whether the failure is this key's own: the broker takes others.
    fn others_get_through(&self, key: &Key, attempt: &Attempt) -> bool {
        if self.parked.holds(key) {
            return attempt.broker_takes;
        }
        let since = self.lanes.failing_since(key);
        let since = since.filter(|_| !attempt.began_well);
        since.is_some_and(|since| self.last_taken.is_some_and(|taken| taken > since))
    }

    /// What follows a failed attempt: how many there were, what is written down, and whether the
    /// others go on without the message.
    fn judge(&mut self, item: &Item, error: &PublishError) -> (u32, ParkedFailure, bool) {
        let (failed, failing_for) = item.failed;
        let attempts = failed.saturating_add(1);
        let event_type = item.event_type();
        let policy = self.options.retry_policy(event_type);
        let verdict = policy.after(
            !error.is_transient(),
            attempts,
            failing_for,
            self.options.backoff,
        );
        let payload = item.payload();
        let cause = error_text::cause(&error_text::with_causes(error), payload);
        let reason = error_text::of_failure(error, payload);
        self.parked.last_failure = Some(format!("row {} of the outbox: {reason}", item.id));
        let retry_after = match verdict {
            Verdict::Retry(wait) => {
                tracing::warn!(id = item.id, event_type, attempts, %reason, "a message is parked");
                self.outbox.metrics().publish_retried();
                Some(wait)
            }
            Verdict::Dead => {
                tracing::error!(id = item.id, event_type, attempts, %reason, "a message is dead: it waits for an operator");
                self.counters.dead(1);
                None
            }
        };
        let goes_on = retry_after.is_none() && !policy.waits_behind_dead();
        (attempts, ParkedFailure { cause, retry_after }, goes_on)
    }
}
