use std::sync::Arc;
use std::time::Duration;

use outbox_runtime::app::{App, AppError, RunningApp};
use outbox_runtime::prelude::*;
use outbox_runtime::relay::RelayOptions;

use super::rough_broker::RoughBroker;

/// A relay with a short lease: for so long a killed relay's shards stay its own, and a restart of
/// relay or program waits for them. A service would keep the default of some seconds.
///
/// What is published has to be confirmed within the lease, and the in-process broker confirms what
/// is handled; so no more goes out at a time than the consumers do well within that time.
fn options() -> RelayOptions {
    RelayOptions::default()
        .lease(Duration::from_millis(700))
        .batch_size(16)
        .max_in_flight(4)
}

/// The program's relay, which is killed now and then to show that nothing comes of it.
pub(crate) struct Relays<DB: Backend> {
    outbox: Outbox<DB>,
    broker: Arc<RoughBroker>,
    /// `None` only for the moment between a kill and the next start.
    running: Option<RunningApp>,
    wanted: u64,
    restarts: u64,
}

impl<DB: Backend> Relays<DB> {
    /// Starts the relay.
    pub(crate) async fn start(
        outbox: Outbox<DB>,
        broker: Arc<RoughBroker>,
        restarts: u64,
    ) -> Result<Self, AppError> {
        Ok(Self {
            running: Some(start(&outbox, &broker).await?),
            outbox,
            broker,
            wanted: restarts,
            restarts: 0,
        })
    }

    /// Kills the relay and starts another one when so much of the work is done that the next of
    /// the wanted restarts is due; they are spread evenly over the work.
    pub(crate) async fn restart_midway(&mut self, done: u64, of: u64) -> Result<bool, AppError> {
        let due =
            self.restarts < self.wanted && done * (self.wanted + 1) >= of * (self.restarts + 1);
        if !due || of == 0 {
            return Ok(false);
        }
        // Dropped, it dies on the spot: no last message, no position, no farewell to its leases.
        // All that it leaves behind is what the database holds.
        self.running = None;
        self.running = Some(start(&self.outbox, &self.broker).await?);
        self.restarts += 1;
        Ok(true)
    }

    /// How often the relay was killed.
    pub(crate) fn restarts(&self) -> u64 {
        self.restarts
    }

    /// Why nothing moves, as far as the relay knows.
    pub(crate) fn health(&self) -> String {
        match &self.running {
            Some(running) => running.health().get().to_string(),
            None => "not running".to_owned(),
        }
    }

    /// Lets the relay come to rest.
    pub(crate) async fn stop(self) -> Result<(), AppError> {
        match self.running {
            Some(running) => running.shutdown().await,
            None => Ok(()),
        }
    }
}

async fn start<DB: Backend>(
    outbox: &Outbox<DB>,
    broker: &Arc<RoughBroker>,
) -> Result<RunningApp, AppError> {
    App::new(outbox.clone())
        .publisher(Arc::clone(broker))
        .relay_options(options())
        .without_consumers()
        .start()
        .await
}
