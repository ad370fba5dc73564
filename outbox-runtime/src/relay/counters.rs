use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::sync::watch;

use crate::store::Backlog;

/// What a relay has done since it started.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RelayCounts {
    /// Messages that the publisher confirmed. After a crash some are published again and count
    /// again.
    pub published: u64,
    /// Messages that were parked, those behind the failing ones included.
    pub parked: u64,
    /// Messages that are dead: nobody tries them again before an operator says so.
    pub dead: u64,
}

/// Counts for [`RelayCounts`], and the latest figures; clones count together.
#[derive(Debug, Clone, Default)]
pub(super) struct Counters {
    published: Arc<AtomicU64>,
    parked: Arc<AtomicU64>,
    dead: Arc<AtomicU64>,
    backlog: Arc<watch::Sender<Option<Backlog>>>,
}

impl Counters {
    pub(super) fn counts(&self) -> RelayCounts {
        RelayCounts {
            published: self.published.load(Ordering::Relaxed),
            parked: self.parked.load(Ordering::Relaxed),
            dead: self.dead.load(Ordering::Relaxed),
        }
    }

    pub(super) fn published(&self, messages: usize) {
        self.published.fetch_add(messages as u64, Ordering::Relaxed);
    }

    pub(super) fn parked(&self, messages: usize) {
        self.parked.fetch_add(messages as u64, Ordering::Relaxed);
    }

    pub(super) fn dead(&self, messages: usize) {
        self.dead.fetch_add(messages as u64, Ordering::Relaxed);
    }

    pub(super) fn backlog(&self, backlog: Backlog) {
        self.backlog.send_replace(Some(backlog));
    }

    pub(super) fn latest_backlog(&self) -> Option<Backlog> {
        *self.backlog.borrow()
    }
}
