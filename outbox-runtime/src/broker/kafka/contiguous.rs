//! What of a partition is finished without a gap.

use std::collections::BTreeSet;

/// The offsets that were taken from a partition, and which of them are finished.
///
/// It holds what is unfinished alone, so that it is no larger than what is in work, however far
/// that lies apart.
#[derive(Debug, Default)]
pub(super) struct Contiguous {
    unfinished: BTreeSet<i64>,
    /// Behind the last one that was taken; `None` before the first.
    next: Option<i64>,
}

impl Contiguous {
    /// From this offset on.
    pub(super) const fn starting_at(offset: i64) -> Self {
        Self {
            unfinished: BTreeSet::new(),
            next: Some(offset),
        }
    }

    /// Takes a message, to be finished later.
    pub(super) fn take(&mut self, offset: i64) {
        self.unfinished.insert(offset);
        self.pass(offset);
    }

    /// Goes past a message that nobody wants.
    pub(super) fn pass(&mut self, offset: i64) {
        self.next = self.next.max(Some(offset.saturating_add(1)));
    }

    /// Finishes a message. Whether it was taken and not finished yet.
    pub(super) fn finish(&mut self, offset: i64) -> bool {
        self.unfinished.remove(&offset)
    }

    /// Whether a message at this offset was taken before.
    pub(super) fn is_behind(&self, offset: i64) -> bool {
        self.next.is_some_and(|next| offset < next)
    }

    /// Where to begin after a restart: all that was taken before it is finished.
    pub(super) fn position(&self) -> Option<i64> {
        self.unfinished.first().copied().or(self.next)
    }

    /// How many are unfinished.
    pub(super) fn len(&self) -> usize {
        self.unfinished.len()
    }

    /// Behind the last one that was taken.
    pub(super) const fn next(&self) -> Option<i64> {
        self.next
    }
}

#[cfg(test)]
mod tests;
