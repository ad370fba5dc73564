use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::runtime::Handle;

use super::outbox::Outbox;
use crate::store::Backend;

/// How long commits are gathered for one notice.
const GATHER: Duration = Duration::from_millis(2);

/// Tells the relays of other processes about commits.
///
/// A notice inside the transaction would serialise all commits of a PostgreSQL server, so a task
/// sends it afterwards, one for all commits of a few milliseconds. One that a crash swallows is
/// made up for by polling.
#[derive(Debug, Default)]
pub(super) struct Notices {
    pending: Arc<AtomicBool>,
}

impl Notices {
    /// Sends a notice soon, unless one is about to be sent.
    pub(super) fn send_soon<DB: Backend>(&self, outbox: &Outbox<DB>) {
        let Ok(runtime) = Handle::try_current() else {
            return;
        };
        if self.pending.swap(true, Ordering::AcqRel) {
            return;
        }
        let pending = Pending(Arc::clone(&self.pending));
        let outbox = outbox.clone();
        runtime.spawn(async move {
            tokio::time::sleep(GATHER).await;
            // Before sending: a commit from now on may be too late for this notice.
            drop(pending);
            if let Err(error) = DB::notify(outbox.pool(), outbox.names()).await {
                tracing::debug!(%error, "relays elsewhere were not told of a commit; they poll");
            }
        });
    }
}

/// Lets the next notice be sent, also when the task never ran.
struct Pending(Arc<AtomicBool>);

impl Drop for Pending {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Release);
    }
}
