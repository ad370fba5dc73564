use std::future::Future;
use std::pin::pin;
use std::time::Duration;

use tokio::time::sleep;
use uuid::Uuid;

use super::options::{Removed, Retention, RetentionError};
use crate::health::HealthHandle;
use crate::store::{Backend, Error, RetentionStore, Sweep};
use crate::unit_of_work::Outbox;

/// How long an instance that died keeps the others from cleaning up. It is renewed with each step.
const LEASE: Duration = Duration::from_secs(60);
const TROUBLE: &str = "finished rows can't be removed";

/// Removes what a [`Retention`] says, on one instance at a time.
///
/// An `App` runs one when it is given a retention.
///
/// ```no_run
/// # use outbox_runtime::prelude::*;
/// # use outbox_runtime::Error;
/// use outbox_runtime::retention::{Cleaner, Retention};
///
/// # #[cfg(feature = "sqlite")]
/// # async fn example(outbox: Outbox<sqlx::Sqlite>, retention: Retention) -> Result<(), Box<dyn std::error::Error>> {
/// let removed = Cleaner::new(outbox, retention)?.clean_once().await?;
/// println!("{} events are gone", removed.outbox);
/// # Ok(())
/// # }
/// ```
pub struct Cleaner<DB: Backend> {
    outbox: Outbox<DB>,
    retention: Retention,
    queries: <DB as RetentionStore>::RetentionQueries,
    health: HealthHandle,
    instance: Uuid,
}

impl<DB: Backend> Cleaner<DB> {
    /// A cleaner.
    ///
    /// # Errors
    /// [`RetentionError`] when the retention can't be used.
    pub fn new(outbox: Outbox<DB>, retention: Retention) -> Result<Self, RetentionError> {
        retention.check()?;
        Ok(Self {
            queries: DB::retention_queries(outbox.names()),
            instance: outbox.inner.clock.new_id(),
            outbox,
            retention,
            health: HealthHandle::new(),
        })
    }

    /// Reports to a health handle that it shares with others.
    #[must_use]
    pub fn with_health(mut self, health: HealthHandle) -> Self {
        self.health = health;
        self
    }

    /// Goes through everything again and again until `shutdown` is ready, while no other instance
    /// does. A failure of the database is told by the health, and tried again.
    ///
    /// # Cancel safety
    /// Each step is one transaction. Dropping the call makes others wait for the lease's end.
    pub async fn run_until(&self, shutdown: impl Future<Output = ()> + Send) {
        let mut shutdown = pin!(shutdown);
        loop {
            tokio::select! {
                biased;
                () = &mut shutdown => break,
                () = self.turn() => {}
            }
        }
        // If it fails, the lease runs out.
        let _ = self.release().await;
    }

    /// Goes through everything once, whether or not another instance does the same: for a program
    /// that is started by the clock.
    ///
    /// # Errors
    /// [`Error::Database`] or [`Error::Busy`]; what was removed until then stays so.
    ///
    /// # Cancel safety
    /// Each step is one transaction.
    pub async fn clean_once(&self) -> Result<Removed, Error> {
        Ok(self.clean(false).await?.unwrap_or_default())
    }

    async fn turn(&self) {
        match self.clean(true).await {
            Ok(removed) => {
                self.health.recover(TROUBLE);
                if let Some(removed) = removed.filter(|removed| *removed != Removed::default()) {
                    tracing::debug!(?removed, "finished rows are removed");
                }
            }
            Err(error) => {
                tracing::warn!(%error, "{TROUBLE}");
                self.health.degrade(TROUBLE, format!("{TROUBLE}: {error}"));
            }
        }
        sleep(self.retention.how.interval).await;
    }

    /// Goes through everything; nothing if another instance has the lease, or takes it midway.
    async fn clean(&self, leased: bool) -> Result<Option<Removed>, Error> {
        let mut removed = Removed::default();
        for (table, keep) in self.retention.tables() {
            let mut sweep = Sweep {
                table,
                age: keep.age,
                floor: i64::from(keep.floor),
                chunk: i64::from(self.retention.how.chunk),
                after: 0,
                archive: self.retention.archive,
            };
            loop {
                if leased && !self.lease().await? {
                    return Ok(None);
                }
                let swept = self.sweep(&sweep).await?;
                removed.add(table, swept.removed);
                self.outbox.metrics().removed(table.name(), swept.removed);
                if !swept.more {
                    break;
                }
                sweep.after = swept.up_to;
                sleep(self.retention.how.pause).await;
            }
        }
        Ok(Some(removed))
    }

    async fn sweep(&self, sweep: &Sweep) -> Result<crate::store::Swept, Error> {
        let _at_work = self.health.at_work("a step of retention");
        let mut writing = self.outbox.writing().await?;
        let swept = DB::sweep(writing.connection(), &self.queries, sweep)
            .await
            .map_err(Error::database("removing finished rows"))?;
        writing.finish().await?;
        Ok(swept)
    }

    async fn lease(&self) -> Result<bool, Error> {
        let _at_work = self.health.at_work("the lease of retention");
        let mut writing = self.outbox.writing().await?;
        let leased = DB::lease_cleaner(writing.connection(), &self.queries, self.instance, LEASE)
            .await
            .map_err(Error::database("leasing the removal of finished rows"))?;
        writing.finish().await?;
        Ok(leased)
    }

    async fn release(&self) -> Result<(), Error> {
        let mut writing = self.outbox.writing().await?;
        DB::release_cleaner(writing.connection(), &self.queries, self.instance)
            .await
            .map_err(Error::database("giving up the removal of finished rows"))?;
        writing.finish().await
    }
}

impl<DB: Backend> std::fmt::Debug for Cleaner<DB> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Cleaner")
            .field("outbox", &self.outbox)
            .field("retention", &self.retention)
            .finish_non_exhaustive()
    }
}
