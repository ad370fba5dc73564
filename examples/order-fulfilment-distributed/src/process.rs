//! What a process that runs for long has besides its app: an end, and words about itself.

use std::time::Duration;

use anyhow::Context;
use outbox_runtime::app::{AppCounts, RunningApp};
use outbox_runtime::health::{Health, HealthHandle};
use sqlx::PgPool;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::time::{MissedTickBehavior, interval, sleep};
use tracing::{info, warn};
use uuid::Uuid;

/// How long a process may take to come to rest after the signal.
pub(crate) const DEADLINE: Duration = Duration::from_secs(10);

/// How often a process writes down its counts.
const TELL_EVERY: Duration = Duration::from_millis(500);
/// What is over sooner is not worth a line.
const SETTLE: Duration = Duration::from_millis(500);

/// The signals that end a process in good order.
pub(crate) struct Shutdown {
    terminate: Signal,
    interrupt: Signal,
}

impl Shutdown {
    /// Watches for them from now on.
    pub(crate) fn watch() -> anyhow::Result<Self> {
        let watch = |kind| signal(kind).context("signals can't be watched for");
        Ok(Self {
            terminate: watch(SignalKind::terminate())?,
            interrupt: watch(SignalKind::interrupt())?,
        })
    }

    /// Returns when one has come.
    pub(crate) async fn requested(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}

/// The row in a database by which others see this process.
pub(crate) struct Row {
    pool: PgPool,
    instance: Uuid,
}

impl Row {
    /// Makes it.
    pub(crate) async fn insert(pool: PgPool, name: &str, broker: &str) -> anyhow::Result<Self> {
        let instance = Uuid::now_v7();
        sqlx::query("INSERT INTO fulfilment_process (instance, name, broker) VALUES ($1, $2, $3)")
            .bind(instance)
            .bind(name)
            .bind(broker)
            .execute(&pool)
            .await
            .context("the process can't write down that it has started")?;
        Ok(Self { pool, instance })
    }

    /// Keeps it up to date, for as long as it is polled.
    pub(crate) async fn keep(&self, app: &RunningApp) {
        let mut ticks = interval(TELL_EVERY);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            // A database that is down is told by the health, and the next turn writes it all.
            let _down = self
                .update(app.counts(), app.is_started(), &app.health().get())
                .await;
        }
    }

    async fn update(
        &self,
        counts: AppCounts,
        subscribed: bool,
        health: &Health,
    ) -> sqlx::Result<()> {
        let duplicates = i64::try_from(counts.consumers.duplicates).unwrap_or(i64::MAX);
        sqlx::query(
            "UPDATE fulfilment_process SET seen_at = clock_timestamp(), subscribed = subscribed OR $2, \
             duplicates = $3, health = $4 WHERE instance = $1",
        )
        .bind(self.instance)
        .bind(subscribed)
        .bind(duplicates)
        .bind(health.to_string())
        .execute(&self.pool)
        .await?;
        Ok(())
    }
}

/// Says in the log when the health changes, once each time.
pub(crate) async fn tell_health(of: &str, health: HealthHandle) {
    loop {
        health.wait_for(|health| !health.is_healthy()).await;
        sleep(SETTLE).await;
        let Health::Degraded { reasons } = health.get() else {
            continue;
        };
        let (first, others) = (reasons.first(), reasons.len().saturating_sub(1));
        let first = first.map_or("", String::as_str);
        match others {
            0 => warn!("{of} is degraded: {first}"),
            _ => warn!("{of} is degraded: {first}; and for {others} more reason(s)"),
        }
        health.wait_for(Health::is_healthy).await;
        info!("{of} is healthy again");
    }
}
