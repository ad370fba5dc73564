use std::sync::Arc;
use std::time::Duration;

use tokio::task::{JoinError, JoinSet};
use tokio::time::Instant;

use super::engine::{Engine, in_time, of_task};
use super::shards::News;
use crate::fault::{self, Point};
use crate::store::{Backend, Error, ShardLease, ShardSet};
use crate::telemetry::metrics::LeaseChange;

/// How long published messages wait to be written down at least. A crash repeats them.
const PAUSE: Duration = Duration::from_millis(10);
/// How many times longer than it took to write them down, and for how long at most: what is written is
/// rows of 64 shards again and again, which takes the longer the more an old snapshot keeps of them.
const PAUSE_FOR_WORK: u32 = 4;
const LONGEST_PAUSE: Duration = Duration::from_millis(200);
/// How often positions follow the cursor where nothing was published, so that a restart does not
/// read the same rows again.
const TIDYING: Duration = Duration::from_secs(5);

const STORING: &str = "storing the relay's positions";

/// Positions that are being written down beside the engine's other work.
#[derive(Debug, Default)]
pub(super) struct Settling {
    /// The one statement that runs.
    task: JoinSet<Result<Stored, Error>>,
    asked: Option<Asked>,
}

/// What is to be written down.
#[derive(Debug)]
struct Asked {
    positions: Vec<ShardLease>,
    news: News,
    of_all: bool,
    gap_closed: bool,
}

/// What the database did.
#[derive(Debug)]
pub(super) struct Stored {
    moved: ShardSet,
    /// How long that took, without the wait for a connection.
    took: Duration,
}

/// What became of it.
pub(super) type Moved = Result<Result<Stored, Error>, JoinError>;

impl Settling {
    pub(super) fn is_under_way(&self) -> bool {
        self.asked.is_some()
    }

    /// What became of the statement that runs; never ends if there is none.
    ///
    /// # Cancel safety
    /// A dropped call loses nothing.
    pub(super) async fn next(&mut self) -> Moved {
        match self.task.join_next().await {
            Some(moved) => moved,
            None => std::future::pending().await,
        }
    }
}

impl<DB: Backend> Engine<DB> {
    pub(super) fn has_positions_to_store(&self) -> bool {
        self.shards.have_news()
            || self.gap_closed
            || !self.shards.drained().is_empty()
            || self.tidying <= Instant::now()
    }

    /// Begins to write down how far the shards have come, or gives up those that are to be.
    pub(super) async fn store_positions(&mut self) {
        if self.shards.drained().is_empty() {
            let of_all = self.tidying <= Instant::now();
            if !self.begin_advance(of_all) {
                self.nothing_to_store(of_all);
            }
            return;
        }
        let now = Instant::now();
        match self.settle_and_release().await {
            Ok(()) => self.storing.succeeded(now + PAUSE, &self.health),
            Err(error) => self.storing_failed(&error),
        }
    }

    fn storing_failed(&mut self, error: &Error) {
        self.storing
            .failed(error, self.options.backoff, &self.health);
    }

    async fn settle_and_release(&mut self) -> Result<(), Error> {
        let drained = self.shards.drained();
        // So that the next owner repeats nothing of it.
        let is_stored = self.store_parked().await?;
        self.advance().await?;
        if !is_stored {
            return Ok(());
        }
        // Those that were lost in the meantime are out of the set.
        let leases = self.shards.leases(drained);
        if leases.is_empty() {
            return Ok(());
        }
        let release = async {
            let mut writing = self.outbox.writing().await?;
            DB::release(writing.connection(), &self.queries, self.instance, &leases)
                .await
                .map_err(Error::database("giving up shards of the relay"))?;
            writing.finish().await
        };
        self.in_time("giving up shards of the relay", release)
            .await?;
        tracing::debug!(shards = leases.len(), "shards were given up");
        let metrics = self.outbox.metrics();
        metrics.leases(LeaseChange::HandedOver, leases.len());
        self.drop_shards(drained);
        Ok(())
    }

    /// Stores the positions of all shards, after those that are being stored.
    pub(super) async fn advance(&mut self) -> Result<(), Error> {
        if self.settling.is_under_way() {
            let moved = self.settling.next().await;
            self.settled(moved);
        }
        if self.begin_advance(true) {
            let moved = self.settling.next().await;
            return self.take_in_moved(moved);
        }
        self.gap_closed = false;
        Ok(())
    }

    /// Begins to store the positions that moved; `false` if there is nothing to store.
    fn begin_advance(&mut self, of_all: bool) -> bool {
        let positions = self
            .shards
            .positions(of_all, |shard| self.scans.settled(shard));
        let news = self.shards.take_news();
        if positions.is_empty() && news.journal.is_none() {
            // What was parked lies behind something that is not done.
            return false;
        }
        let asked = Asked {
            positions: positions.clone(),
            news,
            of_all,
            gap_closed: std::mem::take(&mut self.gap_closed),
        };
        let (outbox, queries) = (self.outbox.clone(), Arc::clone(&self.queries));
        let instance = self.instance;
        let store = async move {
            let passed = fault::at(Point::BeforeSettle).await;
            passed.map_err(|fault| Error::database(STORING)(fault.into()))?;
            let mut writing = outbox.writing().await?;
            let began = Instant::now();
            let connection = writing.connection();
            let moved = DB::advance(connection, &queries, instance, &positions, news.journal)
                .await
                .map_err(Error::database(STORING))?;
            writing.finish().await?;
            let took = began.elapsed();
            Ok(Stored { moved, took })
        };
        let limit = self.options.lease / 3;
        self.settling.task.spawn(in_time(limit, STORING, store));
        self.settling.asked = Some(asked);
        true
    }

    fn nothing_to_store(&mut self, of_all: bool) {
        let now = Instant::now();
        if of_all {
            self.tidying = now + TIDYING;
        }
        self.gap_closed = false;
        self.storing.succeeded(now + PAUSE, &self.health);
    }

    /// Takes in what became of positions that were being stored.
    pub(super) fn settled(&mut self, moved: Moved) {
        let asked = self.settling.asked.as_ref();
        let of_all = asked.is_some_and(|asked| asked.of_all);
        let stored = moved.as_ref().ok().and_then(|stored| stored.as_ref().ok());
        let took = stored.map_or(Duration::ZERO, |stored| stored.took);
        let pause = took
            .saturating_mul(PAUSE_FOR_WORK)
            .clamp(PAUSE, LONGEST_PAUSE);
        match self.take_in_moved(moved) {
            Ok(()) => {
                let now = Instant::now();
                if of_all {
                    self.tidying = now + TIDYING;
                }
                self.storing.succeeded(now + pause, &self.health);
            }
            Err(error) => self.storing_failed(&error),
        }
    }

    /// A position that the database did not take shows that the shard belongs to another relay.
    fn take_in_moved(&mut self, moved: Moved) -> Result<(), Error> {
        let Some(asked) = self.settling.asked.take() else {
            return Ok(());
        };
        let moved = match of_task(STORING, moved) {
            Ok(stored) => stored.moved,
            Err(error) => {
                self.shards.take_back(asked.news);
                self.gap_closed |= asked.gap_closed;
                return Err(error);
            }
        };
        self.shards.stored(&asked.positions);
        let lost: ShardSet = asked
            .positions
            .iter()
            .filter(|lease| {
                // One that was lost since is no longer ours to lose.
                !moved.contains(lease.shard) && self.shards.epoch(lease.shard) == Some(lease.epoch)
            })
            .map(|lease| lease.shard)
            .collect();
        if !lost.is_empty() {
            self.lose_shards(lost);
        }
        Ok(())
    }
}
