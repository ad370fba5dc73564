use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Who may use a connection now: one for each message, or each batch, that is handled at a time.
pub(super) struct Turns {
    turns: Arc<Semaphore>,
    waiting: AtomicUsize,
}

/// The right to use a connection.
pub(super) type Turn = OwnedSemaphorePermit;

impl Turns {
    pub(super) fn new(most: usize) -> Self {
        Self {
            turns: Arc::new(Semaphore::new(most.min(Semaphore::MAX_PERMITS))),
            waiting: AtomicUsize::new(0),
        }
    }

    /// The next turn, in order. `None` never comes, as the turns are not closed.
    pub(super) async fn next(&self) -> Option<Turn> {
        let _waiting = Waiting::of(&self.waiting);
        Arc::clone(&self.turns).acquire_owned().await.ok()
    }

    /// A message is there for whoever has the next turn.
    pub(super) fn expect(&self) {
        self.waiting.fetch_add(1, Ordering::SeqCst);
    }

    /// So many of those messages are taken.
    pub(super) fn expected(&self, messages: usize) {
        self.waiting.fetch_sub(messages, Ordering::SeqCst);
    }

    /// Whether somebody will take over a turn, with what is left of it, the moment it ends.
    pub(super) fn anyone_waits(&self) -> bool {
        self.waiting.load(Ordering::SeqCst) > 0
    }
}

/// Counts who waits, also if the wait is cancelled.
struct Waiting<'a>(&'a AtomicUsize);

impl<'a> Waiting<'a> {
    fn of(count: &'a AtomicUsize) -> Self {
        count.fetch_add(1, Ordering::SeqCst);
        Self(count)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}
