use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinSet;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::error::AppError;
use super::supervisor::supervise;
use crate::health::HealthHandle;
use crate::inbox::{Consumer, ConsumerCounts};
use crate::relay::{Relay, RelayCounts};
use crate::retention::Cleaner;
use crate::store::Backend;

/// How long after the deadline a part gets to report that it reached it.
const REPORT_WAIT: Duration = Duration::from_secs(2);

/// An [`App`](super::App) that is running.
///
/// Dropping it cancels the parts at once, as a crash would; [`shutdown`](Self::shutdown) lets them
/// come to rest.
#[must_use = "dropping it cancels the app"]
pub struct RunningApp {
    health: HealthHandle,
    relay_counts: Box<dyn Fn() -> RelayCounts + Send + Sync>,
    consumer_counts: Box<dyn Fn() -> ConsumerCounts + Send + Sync>,
    stop: DropGuard,
    parts: JoinSet<Result<(), String>>,
    deadline: Duration,
}

/// What an app has done since it started.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct AppCounts {
    /// By the relay; all zero without one.
    pub relay: RelayCounts,
    /// By the consumers; all zero without any.
    pub consumers: ConsumerCounts,
}

impl RunningApp {
    pub(super) fn start<DB: Backend>(
        relay: Option<Relay<DB>>,
        consumer: Option<Consumer<DB>>,
        cleaner: Option<Cleaner<DB>>,
        health: HealthHandle,
        deadline: Duration,
    ) -> Self {
        let stop = CancellationToken::new();
        let mut parts = JoinSet::new();
        let relay = relay.map(Arc::new);
        let consumer = consumer.map(Arc::new);
        if let Some(relay) = &relay {
            parts.spawn(run_relay(
                Arc::clone(relay),
                consumer.clone(),
                health.clone(),
                stop.clone(),
            ));
        }
        if let Some(consumer) = &consumer {
            parts.spawn(run_consumer(
                Arc::clone(consumer),
                health.clone(),
                stop.clone(),
            ));
        }
        if let Some(cleaner) = cleaner {
            parts.spawn(run_cleaner(cleaner, health.clone(), stop.clone()));
        }
        Self {
            health,
            relay_counts: Box::new(move || relay.as_ref().map(|r| r.counts()).unwrap_or_default()),
            consumer_counts: Box::new(move || {
                consumer.as_ref().map(|c| c.counts()).unwrap_or_default()
            }),
            stop: stop.drop_guard(),
            parts,
            deadline,
        }
    }

    /// The health of the app.
    pub fn health(&self) -> HealthHandle {
        self.health.clone()
    }

    /// What the app has done so far.
    pub fn counts(&self) -> AppCounts {
        AppCounts {
            relay: (self.relay_counts)(),
            consumers: (self.consumer_counts)(),
        }
    }

    /// Lets the app come to rest: nothing new is taken, what is in work is finished, leases are
    /// given back.
    ///
    /// # Errors
    /// [`AppError::Deadline`] when that takes longer than the deadline; what is left is cancelled
    /// then and is done again after the next start.
    ///
    /// # Cancel safety
    /// Dropping the call cancels what is in work.
    pub async fn shutdown(mut self) -> Result<(), AppError> {
        drop(self.stop);
        let mut unfinished = Vec::new();
        let at_rest = async {
            while let Some(end) = self.parts.join_next().await {
                match end {
                    Ok(Ok(())) => {}
                    Ok(Err(reason)) => unfinished.push(reason),
                    Err(error) => unfinished.push(error.to_string()),
                }
            }
        };
        let give_up = self.deadline.saturating_add(REPORT_WAIT);
        if tokio::time::timeout(give_up, at_rest).await.is_err() {
            unfinished.push(format!("{} part(s) did not stop", self.parts.len()));
            self.parts.shutdown().await;
        }
        if unfinished.is_empty() {
            return Ok(());
        }
        Err(AppError::Deadline {
            deadline: self.deadline,
            unfinished: unfinished.join("; "),
        })
    }
}

impl fmt::Debug for RunningApp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RunningApp")
            .field("health", &self.health)
            .field("counts", &self.counts())
            .finish_non_exhaustive()
    }
}

/// Relays once the consumers of this app are subscribed: a broker without durable queues would
/// drop what is published before.
async fn run_relay<DB: Backend>(
    relay: Arc<Relay<DB>>,
    consumer: Option<Arc<Consumer<DB>>>,
    health: HealthHandle,
    stop: CancellationToken,
) -> Result<(), String> {
    if let Some(consumer) = consumer {
        let mut subscribed = consumer.subscribed();
        let is_subscribed = subscribed.wait_for(|is_subscribed| *is_subscribed);
        if stop.run_until_cancelled(is_subscribed).await.is_none() {
            return Ok(());
        }
    }
    supervise("relay", &health, &stop, || async {
        relay.run_until(stop.cancelled()).await;
        Ok(())
    })
    .await
}

async fn run_consumer<DB: Backend>(
    consumer: Arc<Consumer<DB>>,
    health: HealthHandle,
    stop: CancellationToken,
) -> Result<(), String> {
    supervise("consumer", &health, &stop, || async {
        let end = consumer.run(stop.clone()).await;
        end.map_err(|error| error.to_string())
    })
    .await
}

async fn run_cleaner<DB: Backend>(
    cleaner: Cleaner<DB>,
    health: HealthHandle,
    stop: CancellationToken,
) -> Result<(), String> {
    supervise("retention", &health, &stop, || async {
        cleaner.run_until(stop.cancelled()).await;
        Ok(())
    })
    .await
}
