use std::sync::Arc;

use tokio::task::JoinError;
use tokio::time::Instant;

use super::engine::Engine;
use super::parking::Attempt;
use super::publishing::{Done, Item, Key, Limit, Published, publish};
use crate::error_text;
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
    pub(super) fn take_in(&mut self, done: Result<Done, JoinError>) {
        let Done { began, published } = match done {
            Ok(done) => done,
            Err(error) => {
                // Only a runtime that shuts down ends a call like this: its messages stay
                // unfinished, and the next run reads them again.
                tracing::warn!(%error, "a call to the publisher was ended");
                return;
            }
        };
        let now = Instant::now();
        let any_taken = published.iter().any(|one| !one.taken.is_empty());
        let broker_takes = any_taken || self.broker_failing_since.is_none();
        if any_taken {
            self.last_taken = self.last_taken.max(Some(began));
            if let Some(since) = self.broker_failing_since.take() {
                self.lanes.retry_failing_since(since);
            }
        }
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
            self.take_out_of_parked(&key, &taken);
            let Some(error) = error else {
                self.lanes.done(&key);
                continue;
            };
            let attempt = Attempt {
                began_well: !taken.is_empty(),
                broker_takes,
                now,
            };
            if error.is_transient() {
                let payload = rest.first().and_then(Item::payload);
                failure = Some(error_text::of_failure(&error, payload));
            }
            self.take_back(&key, rest, &error, &attempt);
        }
        if failure.is_some() {
            self.broker_failing_since.get_or_insert(now);
        }
        self.report_broker(failure);
    }

    fn take_out_of_parked(&mut self, key: &Key, taken: &[(i64, i64)]) {
        let is_ours = |&(_, epoch): &(i64, i64)| self.shards.epoch(key.shard) == Some(epoch);
        if self.parked.holds(key) && taken.first().is_some_and(is_ours) {
            self.parked.published(key, taken);
            self.parking.hasten();
        }
    }

    /// Tells the health which aggregates wait in place.
    fn report_broker(&mut self, failure: Option<String>) {
        let failing = self.lanes.failing();
        if failing == 0 {
            self.health.recover(BROKER);
        } else if let Some(reason) = failure {
            tracing::warn!(aggregates = failing, %reason, "messages were not taken by the broker");
            self.health.degrade(
                BROKER,
                format!("{failing} aggregate(s) wait for the broker: {reason}"),
            );
        }
    }
}
