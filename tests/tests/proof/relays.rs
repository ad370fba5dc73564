use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use fastrand::Rng;
use outbox_runtime::Outbox;
use outbox_runtime::backoff::Backoff;
use outbox_runtime::broker::Publisher;
use outbox_runtime::health::HealthHandle;
use outbox_runtime::relay::{Relay, RelayOptions};
use outbox_tests::TestDatabase;
use tokio::task::{JoinHandle, JoinSet};
use tokio_util::sync::CancellationToken;

/// A relay in a task of its own.
pub(crate) struct RunningRelay {
    stop: CancellationToken,
    task: JoinHandle<()>,
    pub(crate) health: HealthHandle,
}

impl RunningRelay {
    pub(crate) fn start<DB: TestDatabase>(
        outbox: &Outbox<DB>,
        publisher: impl Publisher + 'static,
    ) -> Self {
        Self::start_with(outbox, publisher, options())
    }

    pub(crate) fn start_with<DB: TestDatabase>(
        outbox: &Outbox<DB>,
        publisher: impl Publisher + 'static,
        options: RelayOptions,
    ) -> Self {
        let relay = Relay::new(outbox.clone(), publisher)
            .with_options(options)
            .unwrap();
        let health = relay.health();
        let stop = CancellationToken::new();
        let stopped = stop.clone().cancelled_owned();
        let task = tokio::spawn(async move { relay.run_until(stopped).await });
        Self { stop, task, health }
    }

    pub(crate) async fn stop(self) {
        self.stop.cancel();
        self.task.await.unwrap();
    }

    /// Ends it as a crash would.
    pub(crate) async fn crash(self) {
        self.task.abort();
        let _ = self.task.await;
    }
}

/// Relays that come and go at random until they are called off.
pub(crate) struct Chaos {
    stop: CancellationToken,
    slots: JoinSet<()>,
    stops: Arc<AtomicUsize>,
}

impl Chaos {
    /// One relay at a time on each of the outboxes, each for so many milliseconds.
    pub(crate) fn start<DB: TestDatabase>(
        outboxes: Vec<Outbox<DB>>,
        lives_millis: Range<u64>,
        publisher: impl Publisher + Clone + 'static,
        dice: &mut Rng,
    ) -> Self {
        let stop = CancellationToken::new();
        let stops = Arc::new(AtomicUsize::new(0));
        let mut slots = JoinSet::new();
        for outbox in outboxes {
            let slot = run_slot(
                outbox,
                lives_millis.clone(),
                publisher.clone(),
                dice.fork(),
                stop.clone(),
                Arc::clone(&stops),
            );
            slots.spawn(slot);
        }
        Self { stop, slots, stops }
    }

    /// Lets the last relays run out, and says how many were stopped in all.
    pub(crate) async fn end(mut self) -> usize {
        self.stop.cancel();
        while self.slots.join_next().await.transpose().unwrap().is_some() {}
        self.stops.load(Ordering::SeqCst)
    }
}

async fn run_slot<DB: TestDatabase>(
    outbox: Outbox<DB>,
    lives_millis: Range<u64>,
    publisher: impl Publisher + Clone + 'static,
    mut dice: Rng,
    stop: CancellationToken,
    stops: Arc<AtomicUsize>,
) {
    while !stop.is_cancelled() {
        let relay = RunningRelay::start(&outbox, publisher.clone());
        tokio::time::sleep(Duration::from_millis(dice.u64(lives_millis.clone()))).await;
        if dice.bool() {
            relay.crash().await;
        } else {
            relay.stop().await;
        }
        stops.fetch_add(1, Ordering::SeqCst);
    }
}

/// Leases and backoff that do not keep a test waiting.
pub(crate) fn options() -> RelayOptions {
    RelayOptions::default()
        .lease(Duration::from_millis(900))
        .poll_interval(Duration::from_millis(5), Duration::from_millis(200))
        .backoff(Backoff::new(
            Duration::from_millis(2),
            Duration::from_millis(100),
        ))
}
