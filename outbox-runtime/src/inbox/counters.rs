use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

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
    /// Messages that no handler wants.
    pub unhandled: u64,
    /// Messages of a version that no handler of a consumer reads.
    pub unreadable: u64,
}

/// Counts for [`ConsumerCounts`]; clones count together.
#[derive(Debug, Clone, Default)]
pub(crate) struct Counters(Arc<Atomics>);

#[derive(Debug, Default)]
struct Atomics {
    handled: AtomicU64,
    duplicates: AtomicU64,
    failed_attempts: AtomicU64,
    parked: AtomicU64,
    dead: AtomicU64,
    unhandled: AtomicU64,
    unreadable: AtomicU64,
}

impl Counters {
    pub(crate) fn counts(&self) -> ConsumerCounts {
        ConsumerCounts {
            handled: self.0.handled.load(Ordering::Relaxed),
            duplicates: self.0.duplicates.load(Ordering::Relaxed),
            failed_attempts: self.0.failed_attempts.load(Ordering::Relaxed),
            parked: self.0.parked.load(Ordering::Relaxed),
            dead: self.0.dead.load(Ordering::Relaxed),
            unhandled: self.0.unhandled.load(Ordering::Relaxed),
            unreadable: self.0.unreadable.load(Ordering::Relaxed),
        }
    }

    pub(super) fn handled(&self) {
        self.0.handled.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn duplicates(&self, count: usize) {
        self.0.duplicates.fetch_add(count as u64, Ordering::Relaxed);
    }

    pub(super) fn failed_attempt(&self) {
        self.0.failed_attempts.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn parked(&self) {
        self.0.parked.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn dead(&self) {
        self.0.dead.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn unhandled(&self) {
        self.0.unhandled.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn unreadable(&self) {
        self.0.unreadable.fetch_add(1, Ordering::Relaxed);
    }
}
