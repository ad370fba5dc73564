use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::inbox::lanes::{Job, OpenLane};
use crate::inbox::turns::Turns;

/// A size doubles after so many times as many messages in batches that went well. So where all fail,
/// a fifth of the messages is tried in vain, and after a single failure the size is soon back.
const CALM: usize = 8;

/// The first message of a lane, and the lane.
pub(in crate::inbox) struct Task {
    pub(in crate::inbox) job: Job,
    pub(in crate::inbox) lane: OpenLane,
}

/// The messages that may be handled, in the order in which they came, and those who take them.
pub(in crate::inbox) struct Ready {
    inner: Mutex<Inner>,
    turns: Arc<Turns>,
    most_workers: usize,
}

struct Inner {
    tasks: VecDeque<Task>,
    workers: usize,
    size: Size,
}

/// How many messages a batch may have now.
#[derive(Debug, Clone, Copy)]
struct Size {
    now: usize,
    most: usize,
    /// How many messages went well since it was changed last.
    calm: usize,
}

impl Ready {
    /// For batches of at most so many messages and so many workers.
    pub(in crate::inbox) fn new(batch: usize, most_workers: usize, turns: Arc<Turns>) -> Self {
        Self {
            inner: Mutex::new(Inner {
                tasks: VecDeque::new(),
                workers: 0,
                size: Size::new(batch),
            }),
            turns,
            most_workers: most_workers.max(1),
        }
    }

    /// Adds a message; the worker that is returned has to be set to work.
    pub(in crate::inbox) fn push(self: &Arc<Self>, task: Task) -> Option<Worker> {
        let mut inner = self.lock();
        inner.tasks.push_back(task);
        self.turns.expect();
        if inner.workers >= self.most_workers {
            return None;
        }
        inner.workers += 1;
        Some(Worker {
            ready: Arc::clone(self),
            is_counted: true,
        })
    }

    /// Forgets all messages, which gives them back to the broker.
    pub(super) fn clear(&self) {
        let tasks = std::mem::take(&mut self.lock().tasks);
        self.turns.expected(tasks.len());
        // Lanes have a lock of their own, so this one is free before they close.
        drop(tasks);
    }

    /// So many messages were handled together.
    pub(super) fn went_well(&self, messages: usize) {
        self.lock().size.went_well(messages);
    }

    /// A batch of so many messages failed.
    pub(super) fn failed(&self, messages: usize) {
        self.lock().size.failed(messages);
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        // Nothing panics while the lock is held; if it did, the queue would still be whole.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One of those who take messages, until there are none.
pub(in crate::inbox) struct Worker {
    pub(super) ready: Arc<Ready>,
    is_counted: bool,
}

impl Worker {
    /// The next batch of what is there; `None` ends the worker.
    pub(super) fn take(&mut self) -> Option<Vec<Task>> {
        let mut inner = self.ready.lock();
        let count = inner.size.now.min(inner.tasks.len());
        let tasks: Vec<_> = inner.tasks.drain(..count).collect();
        if tasks.is_empty() {
            // Under the lock, so that a message that comes now finds that it needs a worker.
            inner.workers = inner.workers.saturating_sub(1);
            drop(inner);
            self.is_counted = false;
            return None;
        }
        self.ready.turns.expected(count);
        Some(tasks)
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        if self.is_counted {
            let mut inner = self.ready.lock();
            inner.workers = inner.workers.saturating_sub(1);
        }
    }
}

impl Size {
    fn new(most: usize) -> Self {
        let most = most.max(1);
        Self {
            now: most,
            most,
            calm: 0,
        }
    }

    fn went_well(&mut self, messages: usize) {
        self.calm = self.calm.saturating_add(messages);
        if self.calm >= self.now.saturating_mul(CALM) {
            self.calm = 0;
            self.now = self.now.saturating_mul(2).min(self.most);
        }
    }

    fn failed(&mut self, messages: usize) {
        self.calm = 0;
        self.now = self.now.min(messages / 2).max(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_size_is_halved_by_failures_and_grows_back() {
        let mut size = Size::new(100);
        for expected in [50, 25, 12, 6, 3, 1, 1] {
            size.failed(size.now);
            assert_eq!(size.now, expected);
        }
        let mut handled = 0;
        while size.now < 100 {
            size.went_well(size.now);
            handled += size.now;
        }
        assert_eq!(size.now, 100);
        assert!(handled < 2_000, "{handled}");
    }

    #[test]
    fn where_all_fail_few_are_tried_in_vain() {
        let mut size = Size::new(100);
        let (mut alone, mut in_vain) = (0, 0);
        for _ in 0..10_000 {
            if size.now == 1 {
                alone += 1;
                size.went_well(1);
            } else {
                in_vain += size.now;
                size.failed(size.now);
            }
        }
        assert!(
            in_vain * 4 < alone + in_vain,
            "{in_vain} in vain, {alone} alone"
        );
    }

    #[test]
    fn a_small_batch_that_fails_says_more_than_the_size() {
        let mut size = Size::new(100);
        size.failed(4);
        assert_eq!(size.now, 2);
    }
}
