use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::database_check::check_database;
use super::error::AppError;
#[cfg(feature = "metrics")]
use super::sampling::Sampler;
use super::supervisor::supervise;
use crate::health::{HealthHandle, Milestone};
use crate::inbox::{Consumer, ConsumerCounts, SUBSCRIPTION};
use crate::relay::{Relay, RelayCounts};
use crate::retention::Cleaner;
use crate::store::Backend;
use crate::unit_of_work::Outbox;

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
    /// What has to happen until it counts as started.
    start: Vec<Milestone>,
    stop: StopOnDrop,
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

/// What an app consists of.
pub(super) struct AppParts<DB: Backend> {
    pub(super) outbox: Outbox<DB>,
    pub(super) relay: Option<Relay<DB>>,
    pub(super) consumer: Option<Consumer<DB>>,
    pub(super) cleaner: Option<Cleaner<DB>>,
    #[cfg(feature = "metrics")]
    pub(super) sampler: Option<Sampler<DB>>,
    pub(super) health: HealthHandle,
    pub(super) deadline: Duration,
}

/// What the readiness says of the app as a whole.
pub(super) const APP: &str = "app";

impl RunningApp {
    pub(super) fn start<DB: Backend>(app: AppParts<DB>) -> Self {
        let (health, deadline) = (app.health, app.deadline);
        let stop = CancellationToken::new();
        let mut parts = JoinSet::new();
        let relay = app.relay.map(Arc::new);
        let consumer = app.consumer.map(Arc::new);
        let mut start = Vec::new();
        if relay.is_some() {
            start.push(Milestone::Relaying);
        }
        if consumer.is_some() {
            start.push(Milestone::Subscribed);
            health.make_unready(SUBSCRIPTION, "the consumers are not subscribed yet");
        }
        health.make_ready(APP);
        parts.spawn({
            let check = check_database(app.outbox, health.clone(), stop.clone());
            let running = health.running("look at the database", stop.clone());
            async move {
                check.await;
                drop(running);
                Ok(())
            }
        });
        #[cfg(feature = "metrics")]
        if let Some(sampler) = app.sampler {
            let sampling = sampler.run(stop.clone());
            parts.spawn(async move {
                sampling.await;
                Ok(())
            });
        }
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
        if let Some(cleaner) = app.cleaner {
            parts.spawn(run_cleaner(cleaner, health.clone(), stop.clone()));
        }
        Self {
            health: health.clone(),
            relay_counts: Box::new(move || relay.as_ref().map(|r| r.counts()).unwrap_or_default()),
            consumer_counts: Box::new(move || {
                consumer.as_ref().map(|c| c.counts()).unwrap_or_default()
            }),
            start,
            stop: StopOnDrop { stop, health },
            parts,
            deadline,
        }
    }

    /// The health of the app.
    pub fn health(&self) -> HealthHandle {
        self.health.clone()
    }

    /// Waits until the app does all that it is there for: its consumers are subscribed and its relay
    /// shares the shards with the others. From then on nothing that is published passes it by.
    ///
    /// It waits for a broker that is down at the start; a service that only wants to know whether
    /// it may take requests asks [`HealthHandle::readiness`].
    ///
    /// ```no_run
    /// # use outbox_runtime::prelude::*;
    /// # #[cfg(feature = "sqlite")]
    /// # async fn example(app: App<sqlx::Sqlite>) -> Result<(), Box<dyn std::error::Error>> {
    /// let running = app.start().await?;
    /// running.started().await;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Cancel safety
    /// Dropping the call has no effect.
    pub async fn started(&self) {
        self.health.reached(&self.start).await;
    }

    /// Whether [`started`](Self::started) would return at once.
    pub fn is_started(&self) -> bool {
        self.health.has_reached(&self.start)
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

/// Stops the parts, and keeps requests out, when it is dropped.
struct StopOnDrop {
    stop: CancellationToken,
    health: HealthHandle,
}

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.health
            .make_unready(APP, "the app is stopping or has stopped");
        self.stop.cancel();
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
