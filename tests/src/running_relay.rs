use std::sync::Arc;
use std::time::{Duration, Instant};

use outbox_runtime::Backend;
use outbox_runtime::Outbox;
use outbox_runtime::health::HealthHandle;
use outbox_runtime::relay::{Circuit, Relay, RelayCounts, RelayOptions};
use outbox_runtime::store::Backlog;
use tokio::sync::Notify;
use tokio::task::JoinHandle;

use crate::RecordingPublisher;

/// A relay in a task of its own.
pub struct RunningRelay {
    task: JoinHandle<()>,
    stop: Arc<Notify>,
    /// The relay's health.
    pub health: HealthHandle,
    look: Box<dyn Fn() -> Look + Send + Sync>,
}

/// What can be read of a relay.
struct Look {
    backlog: Option<Backlog>,
    circuit: Circuit,
    counts: RelayCounts,
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
        let relay = Arc::new(relay);
        let health = relay.health();
        let watched = Arc::clone(&relay);
        let stop = Arc::new(Notify::new());
        let stopped = Arc::clone(&stop);
        let task = tokio::spawn(async move { relay.run_until(stopped.notified()).await });
        Self {
            task,
            stop,
            health,
            look: Box::new(move || Look {
                backlog: watched.backlog(),
                circuit: watched.circuit(),
                counts: watched.counts(),
            }),
        }
    }

    /// Waits until the relay's latest look at its backlog is as `wanted` says.
    ///
    /// # Panics
    /// After a minute.
    pub async fn backlog(&self, wanted: impl Fn(&Backlog) -> bool) -> Backlog {
        let deadline = Instant::now() + Duration::from_secs(60);
        loop {
            let latest = (self.look)().backlog;
            if let Some(backlog) = latest.filter(|backlog| wanted(backlog)) {
                return backlog;
            }
            assert!(Instant::now() < deadline, "{latest:?}");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    /// Its circuit to the broker.
    pub fn circuit(&self) -> Circuit {
        (self.look)().circuit
    }

    /// Waits until its circuit to the broker is open or half-open.
    ///
    /// # Panics
    /// After a minute.
    pub async fn opened(&self) {
        let deadline = Instant::now() + Duration::from_secs(60);
        while self.circuit() == Circuit::Closed {
            assert!(Instant::now() < deadline, "the circuit is closed");
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }

    /// What it has done.
    pub fn counts(&self) -> RelayCounts {
        (self.look)().counts
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
