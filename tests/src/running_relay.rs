use std::sync::Arc;
use std::time::Duration;

use outbox_runtime::Backend;
use outbox_runtime::Outbox;
use outbox_runtime::health::HealthHandle;
use outbox_runtime::relay::{Relay, RelayOptions};
use tokio::sync::Notify;
use tokio::task::JoinHandle;

use crate::RecordingPublisher;

/// A relay in a task of its own.
pub struct RunningRelay {
    task: JoinHandle<()>,
    stop: Arc<Notify>,
    /// The relay's health.
    pub health: HealthHandle,
}

impl RunningRelay {
    /// Starts a relay with the options of [`quick`].
    pub fn start<DB: Backend>(outbox: &Outbox<DB>, publisher: &RecordingPublisher) -> Self {
        Self::start_with(outbox, publisher, quick())
    }

    /// Starts a relay.
    pub fn start_with<DB: Backend>(
        outbox: &Outbox<DB>,
        publisher: &RecordingPublisher,
        options: RelayOptions,
    ) -> Self {
        let relay = Relay::new(outbox.clone(), publisher.clone())
            .with_options(options)
            .unwrap();
        let health = relay.health();
        let stop = Arc::new(Notify::new());
        let stopped = Arc::clone(&stop);
        let task = tokio::spawn(async move { relay.run_until(stopped.notified()).await });
        Self { task, stop, health }
    }

    /// Stops it in good order.
    pub async fn stop(self) {
        self.stop.notify_one();
        self.task.await.unwrap();
    }

    /// Ends it as a crash would.
    pub async fn crash(self) {
        self.task.abort();
        let _ = self.task.await;
    }
}

/// Options for tests: leases and backoff that do not keep one waiting.
pub fn quick() -> RelayOptions {
    RelayOptions::default()
        .lease(Duration::from_millis(1500))
        .poll_interval(Duration::from_millis(5), Duration::from_millis(100))
        .backoff(outbox_runtime::backoff::Backoff::new(
            Duration::from_millis(5),
            Duration::from_millis(200),
        ))
}
