use std::sync::Arc;

use tokio::sync::watch;

/// Tells the relays of this process that a commit brought new rows.
///
/// It carries no data: who is woken reads the table. Several signals in a row are one.
#[derive(Debug, Clone)]
pub struct Wake {
    sender: Arc<watch::Sender<u64>>,
}

impl Default for Wake {
    fn default() -> Self {
        Self {
            sender: Arc::new(watch::Sender::new(0)),
        }
    }
}

impl Wake {
    /// Signals all who listen.
    pub fn signal(&self) {
        self.sender
            .send_modify(|commits| *commits = commits.wrapping_add(1));
    }

    /// Listens from now on; `changed` resolves after the next signal.
    pub fn listen(&self) -> watch::Receiver<u64> {
        self.sender.subscribe()
    }
}
