use std::time::Duration;

use tokio::time::Instant;

use super::engine::Engine;
use crate::fault::{self, Point};
use crate::store::{Backend, Error};
use crate::telemetry::metrics::LeaseChange;

/// How long published messages may wait to be written down: what a crash repeats.
const PAUSE: Duration = Duration::from_millis(10);
/// How often positions follow the cursor where nothing was published, so that a restart does not
/// read the same rows again.
const TIDYING: Duration = Duration::from_secs(5);

impl<DB: Backend> Engine<DB> {
    pub(super) fn has_positions_to_store(&self) -> bool {
        self.shards.have_news()
            || self.gap_closed
            || !self.shards.drained().is_empty()
            || self.tidying <= Instant::now()
    }

    /// Writes down how far the shards have come, and gives up those that are to be.
    pub(super) async fn store_positions(&mut self) {
        let of_all = self.tidying <= Instant::now();
        match self.store_and_release(of_all).await {
            Ok(()) => {
                let now = Instant::now();
                if of_all {
                    self.tidying = now + TIDYING;
                }
                self.gap_closed = false;
                self.storing.succeeded(now + PAUSE, &self.health);
            }
            Err(error) => self
                .storing
                .failed(&error, self.options.backoff, &self.health),
        }
    }

    async fn store_and_release(&mut self, of_all: bool) -> Result<(), Error> {
        let drained = self.shards.drained();
        if !drained.is_empty() {
            // So that the next owner repeats nothing of it.
            self.store_parked().await?;
        }
        self.advance(of_all || !drained.is_empty()).await?;
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

    /// Stores the positions that moved. A position that the database does not take shows that the
    /// shard belongs to another relay.
    pub(super) async fn advance(&mut self, of_all: bool) -> Result<(), Error> {
        let passed = fault::at(Point::BeforeSettle).await;
        passed.map_err(|fault| Error::database("storing positions of the relay")(fault.into()))?;
        let positions = self
            .shards
            .positions(of_all, |shard| self.scans.settled(shard));
        let journal = self.shards.journal();
        if positions.is_empty() && journal.is_none() {
            // What was parked lies behind something that is not done.
            self.shards.stored(&[]);
            return Ok(());
        }
        let store = async {
            let mut writing = self.outbox.writing().await?;
            let moved = DB::advance(
                writing.connection(),
                &self.queries,
                self.instance,
                &positions,
                journal,
            )
            .await
            .map_err(Error::database("storing the relay's positions"))?;
            writing.finish().await?;
            Ok(moved)
        };
        let moved = self.in_time("storing the relay's positions", store).await?;
        self.shards.stored(&positions);
        let lost = positions
            .iter()
            .map(|lease| lease.shard)
            .filter(|&shard| !moved.contains(shard))
            .collect::<crate::store::ShardSet>();
        if !lost.is_empty() {
            self.lose_shards(lost);
        }
        Ok(())
    }
}
