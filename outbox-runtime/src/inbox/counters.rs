use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::telemetry::metrics::Metrics;

/// What a consumer has done since it started.
///
/// A message that two handlers want counts twice, once for each.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ConsumerCounts {
    /// Messages whose handler's effect was committed.
    pub handled: u64,
    /// Deliveries of messages whose effect was there already, or was on its way: absorbed.
    pub duplicates: u64,
    /// Attempts that left no effect: the handler or the database failed.
    pub failed_attempts: u64,
    /// Messages that were set aside in the database, since they failed or wait behind one that did.
    pub parked: u64,
    /// Messages that are not tried again until an operator says so.
    pub dead: u64,
    /// Batches of several messages that were committed.
    pub batches: u64,
    /// Batches that failed, and whose messages were then handled one by one.
    pub batches_rolled_back: u64,
    /// Messages that no handler wants.
    pub unhandled: u64,
    /// Messages of a version that no handler of a consumer reads, and what is no message at all.
    pub unreadable: u64,
}

/// Counts for [`ConsumerCounts`] and the metrics; clones count together.
#[derive(Debug, Clone)]
pub(crate) struct Counters {
    atomics: Arc<Atomics>,
    pub(super) metrics: Metrics,
}

#[derive(Debug, Default)]
struct Atomics {
    handled: AtomicU64,
    duplicates: AtomicU64,
    failed_attempts: AtomicU64,
    parked: AtomicU64,
    dead: AtomicU64,
    batches: AtomicU64,
    batches_rolled_back: AtomicU64,
    unhandled: AtomicU64,
    unreadable: AtomicU64,
}

impl Counters {
    pub(super) fn new(metrics: Metrics) -> Self {
        Self {
            atomics: Arc::default(),
            metrics,
        }
    }

    pub(crate) fn counts(&self) -> ConsumerCounts {
        ConsumerCounts {
            handled: self.atomics.handled.load(Ordering::Relaxed),
            duplicates: self.atomics.duplicates.load(Ordering::Relaxed),
            failed_attempts: self.atomics.failed_attempts.load(Ordering::Relaxed),
            parked: self.atomics.parked.load(Ordering::Relaxed),
            dead: self.atomics.dead.load(Ordering::Relaxed),
            batches: self.atomics.batches.load(Ordering::Relaxed),
            batches_rolled_back: self.atomics.batches_rolled_back.load(Ordering::Relaxed),
            unhandled: self.atomics.unhandled.load(Ordering::Relaxed),
            unreadable: self.atomics.unreadable.load(Ordering::Relaxed),
        }
    }

    pub(super) fn handled(&self) {
        self.atomics.handled.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn duplicate(&self, consumer: &str) {
        self.atomics.duplicates.fetch_add(1, Ordering::Relaxed);
        self.metrics.duplicate(consumer);
    }

    pub(super) fn failed_attempt(&self) {
        self.atomics.failed_attempts.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn parked(&self, consumer: &str) {
        self.atomics.parked.fetch_add(1, Ordering::Relaxed);
        self.metrics.parked_in_inbox(consumer);
    }

    pub(super) fn dead(&self, consumer: &str) {
        self.atomics.dead.fetch_add(1, Ordering::Relaxed);
        self.metrics.dead_in_inbox(consumer);
    }

    pub(super) fn batch(&self, messages: usize) {
        self.atomics.batches.fetch_add(1, Ordering::Relaxed);
        self.metrics.inbox_batch("committed", messages);
    }

    pub(super) fn batch_rolled_back(&self, messages: usize) {
        let count = &self.atomics.batches_rolled_back;
        count.fetch_add(1, Ordering::Relaxed);
        self.metrics.inbox_batch("rolled_back", messages);
    }

    pub(super) fn unhandled(&self) {
        self.atomics.unhandled.fetch_add(1, Ordering::Relaxed);
        self.metrics.unhandled();
    }

    pub(super) fn unreadable(&self, consumer: &str) {
        self.atomics.unreadable.fetch_add(1, Ordering::Relaxed);
        self.metrics.unreadable(consumer);
    }
}
