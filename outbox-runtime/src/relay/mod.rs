//! The relay: carries committed events from the outbox to the broker.
//!
//! The outbox is an append-only log and the relay a cursor on it. It promises that every committed
//! event reaches the broker at least once, and that events of one aggregate reach it in the order
//! of their commits; across crashes, broker outages and any number of relay instances.
//!
//! # Several instances
//!
//! The log has 64 shards. Each instance leases an equal part of them and renews its leases by the
//! database's clock; what a crashed instance had is taken over when its lease ends. Before a call
//! to the publisher the relay checks, by its own monotonic clock from before the renewal was sent,
//! that the lease still holds, and the call ends with the lease, unless that is renewed in time.
//! A shard's position moves only for its owner in the epoch of its claim, so an instance that was
//! paused and wakes up moves nothing.
//!
//! # Why no event is lost: the order of commits is not the order of ids
//!
//! On PostgreSQL a row with a lower id can become visible after one with a higher id. Rows are
//! published as soon as they are visible, but ids that were stepped over stay *gaps*, and a
//! position never moves past a gap. A gap ends in one of two ways: its row turns up, or it is
//! proved that there will never be one:
//!
//! 1. A read sees that id `g` is missing and a higher id `m` is there.
//! 2. After that read, the relay asks which transactions hold the lock on the table that every
//!    insert takes (`pg_locks`). The sequence gives out ids one by one, so `g` was given out
//!    before `m`, and whoever got it had taken the lock before. So its transaction has ended, or
//!    it is in that list.
//! 3. Once each transaction of that list has ended (left later lists), one more read is made. A
//!    transaction is visible to others before it lets go of its locks, so this read shows the row
//!    if there is one. If there is none, there never will be.
//!
//! No timeout takes part in this. A transaction that stays open for hours holds back positions,
//! not messages, and costs one list of the ids that are missing (16 bytes a range). What a transaction writes to
//! other tables before it first writes to the outbox does not hold back anything.
//! An id must come from the column's own default: who calls `nextval` ahead of the insert breaks
//! step 2.
//!
//! On SQLite there is one writer at a time and ids are given out within its transaction, so ids
//! become visible in their order and a missing one is missing for good.
//!
//! # Why events of one aggregate keep their order
//!
//! Two commits of one aggregate follow each other: the second one waits for the first one's row
//! and checks its version, and only then gets its ids. So where a row of the aggregate is visible,
//! all earlier ones are. Each read is one statement and so one snapshot, it asks for all gaps
//! besides what lies above the cursor, and its rows are taken in order of their ids, never past
//! where it was cut off. So no row is taken before an earlier one of its aggregate. (Gaps that are
//! many are left out where only transactions can fill them of which that very snapshot shows that
//! they had not ended; where it does not show that, the read is made again with all of them.) From
//! then on the messages of one ordering key stand in one queue, of which only one call to the
//! publisher takes at a time.
//!
//! # When the broker fails
//!
//! While the broker takes nothing at all, messages are retried in place with backoff and jitter. Up
//! to [`RelayOptions::max_held`] of them wait in memory, then reading waits. Nothing counts as
//! published that the publisher did not confirm. After [`RelayOptions::circuit_breaker`] calls in a
//! row that came to nothing, only one call at a time is made, at growing distances, until the broker
//! takes something of it. That decides about calls alone: leases are kept, order and parking are
//! as without it.
//!
//! # When a message fails
//!
//! A message that the broker refuses for good, or that fails again although the broker takes others,
//! is *parked* with all later ones of its aggregate: they move in order to the table
//! `outbox_parked`, and the position moves past them. The first of them is tried again by the
//! database's clock, as [`RelayOptions::retry`] says. When it is out, the others follow, and the
//! aggregate flows directly again. When its attempts or its time are used up it is *dead*: it is kept
//! with the causes of its last 50 attempts and waits for an operator, and the later ones wait behind
//! it or go on without it. The rules and their proof stand in the source of `relay/parking`.
//!
//! A new owner of a shard learns what is parked after its claim and before its first read. As long
//! as nothing is parked, that is the only statement that parking costs; while something is, there is
//! one more query a second at most, and one whenever a retry is due.

mod backlog;
mod breaker;
mod chore;
mod circuit;
mod counters;
mod dispatching;
mod engine;
mod gaps;
mod lanes;
mod leasing;
mod options;
mod parking;
mod positions;
mod publishing;
mod ranges;
mod rate;
mod reader;
mod reading;
mod scan;
mod scheduling;
mod shards;

use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use self::counters::Counters;
use self::engine::Engine;
use crate::backoff::Backoff;
use crate::broker::Publisher;
use crate::error_text;
use crate::health::HealthHandle;
use crate::store::{Backend, Backlog, Wake};
use crate::unit_of_work::Outbox;

pub use breaker::Circuit;
pub use counters::RelayCounts;
pub use options::{RelayOptions, RelayOptionsError};

/// Carries the events of an [`Outbox`] to a [`Publisher`].
///
/// Run one in each instance of a service; they share the work. An `App` runs one by itself.
///
/// ```no_run
/// # use outbox_runtime::prelude::*;
/// # use outbox_runtime::broker::Publisher;
/// # use outbox_runtime::relay::Relay;
/// # #[cfg(feature = "sqlite")]
/// # async fn example(
/// #     outbox: Outbox<sqlx::Sqlite>,
/// #     publisher: impl Publisher + 'static,
/// #     shutdown: impl Future<Output = ()> + Send,
/// # ) {
/// let relay = Relay::new(outbox, publisher);
/// let health = relay.health();
/// relay.run_until(shutdown).await;
/// # let _ = health;
/// # }
/// ```
pub struct Relay<DB: Backend> {
    outbox: Outbox<DB>,
    publisher: Arc<dyn Publisher>,
    options: RelayOptions,
    health: HealthHandle,
    counters: Counters,
}

impl<DB: Backend> Relay<DB> {
    /// A relay with default options.
    pub fn new(outbox: Outbox<DB>, publisher: impl Publisher + 'static) -> Self {
        Self {
            counters: Counters::new(outbox.metrics().clone()),
            outbox,
            publisher: Arc::new(publisher),
            options: RelayOptions::default(),
            health: HealthHandle::new(),
        }
    }

    /// Replaces the options.
    ///
    /// # Errors
    /// [`RelayOptionsError`] when they can't be used.
    pub fn with_options(mut self, options: RelayOptions) -> Result<Self, RelayOptionsError> {
        options.check()?;
        self.options = options;
        Ok(self)
    }

    /// Reports to a health handle that it shares with others.
    #[must_use]
    pub fn with_health(mut self, health: HealthHandle) -> Self {
        self.health = health;
        self
    }

    /// Whether events flow, and if not, why.
    pub fn health(&self) -> HealthHandle {
        self.health.clone()
    }

    /// What it has done so far.
    pub fn counts(&self) -> RelayCounts {
        self.counters.counts()
    }

    /// Whether it calls its publisher at this moment, or waits since calls failed.
    pub fn circuit(&self) -> Circuit {
        self.counters.latest_circuit()
    }

    /// What waited in the log when the relay last looked, which it does once in
    /// [`backlog_interval`](RelayOptions::backlog_interval); `None` before the first look.
    pub fn backlog(&self) -> Option<Backlog> {
        self.counters.latest_backlog()
    }

    /// Relays until `shutdown` is ready, then stops within the options' deadline.
    ///
    /// Failures of the database or the broker never end it: it tries again, and says so in its
    /// [`health`](Self::health). The tables may even be missing at first.
    ///
    /// # Cancel safety
    /// Dropping the call loses nothing: what was not confirmed by the publisher, or not yet written
    /// down, is published by the next run. But other instances then wait for the leases to end, so
    /// prefer `shutdown`.
    pub async fn run_until(&self, shutdown: impl Future<Output = ()> + Send) {
        let notices = Wake::default();
        let engine = Engine::new(
            self.outbox.clone(),
            Arc::new(DB::relay_queries(self.outbox.names())),
            Arc::clone(&self.publisher),
            self.options.clone(),
            self.health.clone(),
            self.counters.clone(),
            &notices,
        );
        tokio::select! {
            () = engine.run_until(shutdown) => {}
            () = self.listen(&notices) => {}
        }
    }

    /// Listens for other processes' commits for ever, with a new connection after each failure.
    async fn listen(&self, notices: &Wake) {
        let backoff = Backoff::new(Duration::from_millis(200), Duration::from_secs(30));
        let mut failures = 0_u32;
        loop {
            let began = Instant::now();
            let error = DB::listen(self.outbox.pool(), self.outbox.names(), notices).await;
            if began.elapsed() > backoff.longest() {
                failures = 0;
            }
            failures = failures.saturating_add(1);
            tracing::debug!(failures, reason = %error_text::of_error(&error), "not listening for commits of other processes; polling");
            tokio::time::sleep(backoff.delay(failures)).await;
        }
    }
}

impl<DB: Backend> fmt::Debug for Relay<DB> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Relay")
            .field("outbox", &self.outbox)
            .field("options", &self.options)
            .finish_non_exhaustive()
    }
}
