use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use tokio::runtime::Handle;

use super::outbox::Outbox;
use crate::store::Backend;

/// How long commits are gathered for the next notice.
const GATHER: Duration = Duration::from_millis(2);

/// The same while there are many: the relays elsewhere have enough to read meanwhile.
const GATHER_MANY: Duration = Duration::from_millis(10);

/// How many commits during [`GATHER`] are many.
const MANY: u64 = 4;

/// Tells the relays of other processes about commits.
///
/// A notice inside the transaction would serialise all commits of a PostgreSQL server, so a task
/// sends it afterwards: at once for a commit after a quiet time, and one for all commits of the next
/// few milliseconds. One that a crash swallows is made up for by polling.
#[derive(Debug, Default)]
pub(super) struct Notices(Arc<State>);

#[derive(Debug, Default)]
struct State {
    commits: AtomicU64,
    is_sending: AtomicBool,
}

impl Notices {
    /// Sends a notice soon.
    pub(super) fn send_soon<DB: Backend>(&self, outbox: &Outbox<DB>) {
        let Ok(runtime) = Handle::try_current() else {
            return;
        };
        self.0.commits.fetch_add(1, Ordering::AcqRel);
        if let Some(sending) = Sending::begin(&self.0) {
            runtime.spawn(send(outbox.clone(), sending));
        }
    }
}

/// Sends notices until there is nothing new.
async fn send<DB: Backend>(outbox: Outbox<DB>, sending: Sending) {
    let state = Arc::clone(&sending.0);
    let mut sending = Some(sending);
    while let Some(task) = sending {
        let mut now = state.commits.load(Ordering::Acquire);
        let mut told = now.wrapping_sub(1);
        while told != now {
            if let Err(error) = DB::notify(outbox.pool(), outbox.names()).await {
                tracing::debug!(%error, "relays elsewhere were not told of a commit; they poll");
            }
            tokio::time::sleep(pause(now.wrapping_sub(told))).await;
            // What was committed before a notice is told by it.
            told = now;
            now = state.commits.load(Ordering::Acquire);
        }
        drop(task);
        // A commit that came in between found this task still sending.
        sending = match state.commits.load(Ordering::Acquire) == told {
            true => None,
            false => Sending::begin(&state),
        };
    }
}

/// How long to gather after a notice about so many commits.
const fn pause(commits: u64) -> Duration {
    if commits > MANY { GATHER_MANY } else { GATHER }
}

/// The right to send; given back also when the task never runs to its end.
struct Sending(Arc<State>);

impl Sending {
    fn begin(state: &Arc<State>) -> Option<Self> {
        let is_taken = state.is_sending.swap(true, Ordering::AcqRel);
        (!is_taken).then(|| Self(Arc::clone(state)))
    }
}

impl Drop for Sending {
    fn drop(&mut self) {
        // A swap, so that the look at the commits that follows is not made before it.
        self.0.is_sending.swap(false, Ordering::AcqRel);
    }
}
