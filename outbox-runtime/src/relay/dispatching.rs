use std::sync::Arc;

use tokio::task::JoinError;
use tokio::time::Instant;

use super::engine::Engine;
use super::publishing::{Limit, Published, publish};
use super::text;
use crate::store::Backend;

/// The part of health that speaks of messages which the broker does not take.
const BROKER: &str = "the relay's broker";

impl<DB: Backend> Engine<DB> {
    /// Whether a call to the publisher may begin: the leases are certain and a place is free.
    pub(super) fn can_dispatch(&self) -> bool {
        self.publishing.len() < self.options.max_in_flight
            && Instant::now() < *self.lease_until.borrow()
    }

    /// Hands as much to the publisher as may be in flight.
    pub(super) fn dispatch(&mut self) {
        let draining = self.shards.draining();
        while self.can_dispatch() {
            let now = Instant::now();
            let batch = self.lanes.take(self.options.batch_size, now, |key| {
                !draining.contains(key.shard)
            });
            if batch.is_empty() {
                return;
            }
            for taken in &batch {
                for item in &taken.items {
                    self.shards.start(taken.key.shard, item.epoch);
                }
            }
            let limit = Limit {
                latest: now + self.options.publish_timeout,
                lease: self.lease_until.subscribe(),
            };
            self.publishing
                .spawn(publish(Arc::clone(&self.publisher), batch, limit));
        }
    }

    /// Takes in what became of a call to the publisher.
    pub(super) fn take_in(&mut self, done: Result<Vec<Published>, JoinError>) {
        let published = match done {
            Ok(published) => published,
            Err(error) => {
                // Only a runtime that shuts down ends a call like this: its messages stay
                // unfinished, and the next run reads them again.
                tracing::warn!(%error, "a call to the publisher was ended");
                return;
            }
        };
        let now = Instant::now();
        let mut any_taken = false;
        let mut failure = None;
        for one in published {
            let Published {
                key,
                taken,
                rest,
                error,
            } = one;
            self.counters.published(taken.len());
            for &(id, epoch) in &taken {
                self.shards.end(key.shard, epoch, id, true);
            }
            for item in &rest {
                self.shards.end(key.shard, item.epoch, item.id, false);
            }
            any_taken |= !taken.is_empty();
            if rest.is_empty() {
                self.lanes.done(&key);
                continue;
            }
            failure = error.or(failure);
            self.lanes.fail(&key, rest, now, &self.options.backoff);
        }
        if any_taken && let Some(since) = self.broker_failing_since.take() {
            self.lanes.retry_failing_since(since);
        }
        if let Some(error) = failure {
            self.broker_failing_since.get_or_insert(now);
            let failing = self.lanes.failing();
            let reason = text::of_error(&error);
            tracing::warn!(aggregates = failing, %reason, "messages were not taken by the broker");
            self.health.degrade(
                BROKER,
                format!("{failing} aggregate(s) wait for the broker: {reason}"),
            );
        } else if self.lanes.failing() == 0 {
            self.health.recover(BROKER);
        }
    }
}
