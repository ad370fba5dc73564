use std::sync::Arc;

use tokio::task::JoinError;
use tokio::time::Instant;

use super::breaker::{Outcome, Permit};
use super::engine::Engine;
use super::lanes::{Quota, Taken, Weighed};
use super::parking::Attempt;
use super::publishing::{Done, Item, Key, Limit, Published, publish};
use crate::error_text;
use crate::store::Backend;

/// The part of health that speaks of messages which the broker does not take.
const BROKER: &str = "the relay's broker";

/// What is remembered of a call to the publisher while it is out.
#[derive(Debug, Clone, Copy)]
pub(super) struct Call {
    permit: Permit,
    bytes: usize,
}

impl<DB: Backend> Engine<DB> {
    /// Hands as much to the publisher as may be in flight.
    pub(super) fn dispatch(&mut self) {
        loop {
            let now = Instant::now();
            let Some(permit) = self.permit(now) else {
                return;
            };
            let batch = self.next_batch(permit, now);
            if batch.is_empty() {
                return;
            }
            self.call(permit, batch, now);
        }
    }

    /// When the time has come for another call, unless something else changes before.
    pub(super) fn next_dispatch(&self) -> Option<Instant> {
        let now = Instant::now();
        if self.permit(now).is_none() {
            return self.breaker.next_probe().filter(|&probe| probe > now);
        }
        match &self.bucket {
            Some(bucket) if bucket.available(now) == 0 && self.lanes.held() > 0 => {
                Some(bucket.next())
            }
            _ => self.lanes.next_retry(),
        }
    }

    /// Whether a call to the publisher may begin: a place is free, the leases are certain, and the
    /// circuit lets it through.
    fn permit(&self, now: Instant) -> Option<Permit> {
        let calls = self.publishing.len();
        if calls >= self.options.max_in_flight || now >= *self.lease_until.borrow() {
            return None;
        }
        self.breaker.permit(now, calls)
    }

    fn next_batch(&mut self, permit: Permit, now: Instant) -> Vec<Taken<Key, Item>> {
        let options = &self.options;
        let room = options
            .max_in_flight_bytes
            .saturating_sub(self.in_flight_bytes);
        let is_alone = self.publishing.is_empty();
        let bucket = self.bucket.as_ref();
        let allowed = bucket.map_or(usize::MAX, |bucket| bucket.available(now));
        let quota = Quota {
            items: options.batch_size.min(allowed),
            bytes: options.batch_bytes.min(room),
            first: if is_alone { usize::MAX } else { room },
        };
        let draining = self.shards.draining();
        if permit == Permit::Probe {
            if let Some(since) = self.broker_failing_since {
                self.lanes.retry_failing_since(since);
            }
            // A message that fails while others pass is no good probe.
            let parked = &self.parked;
            let batch = self.lanes.take(quota, now, |key| {
                !draining.contains(key.shard) && !parked.holds(key)
            });
            if !batch.is_empty() {
                return batch;
            }
        }
        self.lanes
            .take(quota, now, |key| !draining.contains(key.shard))
    }

    fn call(&mut self, permit: Permit, batch: Vec<Taken<Key, Item>>, now: Instant) {
        let mut messages = 0;
        let mut bytes = 0;
        for taken in &batch {
            for item in &taken.items {
                self.shards.start(taken.key.shard, item.epoch);
                messages += 1;
                bytes += item.bytes();
            }
        }
        self.in_flight_bytes += bytes;
        if let Some(bucket) = &mut self.bucket {
            bucket.spend(messages, now);
        }
        self.breaker.began(permit);
        self.counters.circuit(self.breaker.circuit());
        let limit = Limit {
            latest: now + self.options.publish_timeout,
            lease: self.lease_until.subscribe(),
        };
        let call = Call { permit, bytes };
        let publishing = publish(
            Arc::clone(&self.publisher),
            batch,
            limit,
            self.outbox.metrics().clone(),
        );
        self.publishing
            .spawn(async move { (call, publishing.await) });
    }

    /// Takes in what became of a call to the publisher.
    pub(super) fn take_in(&mut self, done: Result<(Call, Done), JoinError>) {
        let (call, Done { began, published }) = match done {
            Ok(done) => done,
            Err(error) => {
                // Only a runtime that shuts down ends a call like this: its messages stay
                // unfinished, and the next run reads them again.
                tracing::warn!(%error, "a call to the publisher was ended");
                return;
            }
        };
        self.in_flight_bytes = self.in_flight_bytes.saturating_sub(call.bytes);
        let outcome = self.outcome(call.permit, &published);
        let now = Instant::now();
        self.tell_breaker(call.permit, outcome, now);
        let any_taken = outcome == Outcome::Taken;
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
                self.lanes.done(key);
                continue;
            };
            if error.is_withheld() && !taken.is_empty() && !self.parked.holds(&key) {
                // Nothing failed: the call's time was up.
                self.lanes.go_on(&key, rest);
                continue;
            }
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
        if failure.is_none() && !self.broker_reported {
            return;
        }
        let failing = self.lanes.failing().count();
        self.broker_reported = failing > 0;
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
