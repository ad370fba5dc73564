use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// What a relay has done since it started.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RelayCounts {
    /// Messages that the publisher confirmed. After a crash some are published again and count
    /// again.
    pub published: u64,
}

/// Counts for [`RelayCounts`]; clones count together.
#[derive(Debug, Clone, Default)]
pub(super) struct Counters {
    published: Arc<AtomicU64>,
}

impl Counters {
    pub(super) fn counts(&self) -> RelayCounts {
        RelayCounts {
            published: self.published.load(Ordering::Relaxed),
        }
    }

    pub(super) fn published(&self, messages: usize) {
        self.published.fetch_add(messages as u64, Ordering::Relaxed);
    }
}
