use std::time::Duration;

use tokio::time::Instant;

use super::engine::Engine;
use crate::domain::SHARDS;
use crate::health::Milestone;
use crate::store::{Backend, Error, Renewal, ShardLease, ShardSet};
use crate::telemetry::metrics::LeaseChange;

/// How much more often an instance looks for shards while it has less than its share.
const HUNGRY: u32 = 4;
/// How often an instance looks whether shards have become free: with what a claim takes, what
/// another one gives up is in work again within a second, however long leases are.
const LOOK: Duration = Duration::from_millis(400);

impl<DB: Backend> Engine<DB> {
    /// Renews the leases and takes or gives up shards, so that all instances have about as many.
    pub(super) async fn keep_leases(&mut self) {
        // Before the statement is sent, so that the lease ends here before it ends there.
        let sent = Instant::now();
        let (renewal, claimed) = match self
            .in_time("renewing the relay's leases", self.renew_and_claim())
            .await
        {
            Ok(done) => done,
            Err(error) => {
                self.leasing
                    .failed(&error, self.options.backoff, &self.health);
                // Leases must not run out over a long wait.
                self.leasing.no_later_than(sent + self.options.lease / 3);
                return;
            }
        };
        let ended = self.lease_until.send_replace(sent + self.options.lease);
        let share = fair_share(renewal.instances);
        let lost = self.shards.lost(&renewal.owned);
        if !lost.is_empty() {
            self.lose_shards(lost);
        }
        if ended < Instant::now() {
            let kept = self.shards.len();
            self.outbox.metrics().leases(LeaseChange::RenewedLate, kept);
        }
        // A claim whose answer was lost comes to light here.
        let mut leases = renewal.owned;
        leases.extend(claimed);
        leases.retain(|lease| self.shards.epoch(lease.shard).is_none());
        // Before anything of them is read: what is parked goes first.
        if let Err(error) = self.load_parked(&leases).await {
            self.leasing
                .failed(&error, self.options.backoff, &self.health);
            self.leasing.no_later_than(sent + self.options.lease / 3);
            return;
        }
        self.take_over(&leases);
        self.shards.share(share);
        self.outbox.metrics().shards(self.shards.len());
        self.check_log_is_there(renewal.instances);
        let pause = self.options.lease / 3;
        let hungry = self.shards.len() < share;
        let next = sent + if hungry { pause / HUNGRY } else { pause };
        self.leasing.succeeded(next, &self.health);
        self.health.reach(Milestone::Relaying);
    }

    /// Looks whether shards are free, which is a read only, and claims them at once.
    pub(super) async fn look_for_vacant(&mut self) {
        match self
            .in_time("looking for free shards", self.any_vacant())
            .await
        {
            Ok(any) => {
                if any {
                    self.leasing.hasten();
                }
                let pause = LOOK.min(self.options.lease / 3 / HUNGRY);
                self.looking.succeeded(Instant::now() + pause, &self.health);
            }
            Err(error) => self
                .looking
                .failed(&error, self.options.backoff, &self.health),
        }
    }

    async fn any_vacant(&self) -> Result<bool, Error> {
        let mut connection = self.outbox.connection().await?;
        DB::any_vacant(&mut connection, &self.queries)
            .await
            .map_err(Error::database("looking for free shards"))
    }

    /// Without the rows of its shards the log would be read by nobody, and nobody would know.
    fn check_log_is_there(&self, instances: usize) {
        const SHARDS_MISSING: &str = "the relay's shards";
        if instances <= 1 && self.shards.all().is_empty() {
            self.health.degrade(
                SHARDS_MISSING,
                "no shard is free although no other relay lives; a crashed relay's leases run out \
                 by themselves, but if this stays, the table outbox_shard has lost its rows (0 to 63)"
                    .to_owned(),
            );
        } else {
            self.health.recover(SHARDS_MISSING);
        }
    }

    async fn renew_and_claim(&self) -> Result<(Renewal, Vec<ShardLease>), Error> {
        let lease = self.options.lease;
        let mut writing = self.outbox.writing().await?;
        let renewal = DB::renew(writing.connection(), &self.queries, self.instance, lease)
            .await
            .map_err(Error::database("renewing the relay's leases"))?;
        let wanted = fair_share(renewal.instances).saturating_sub(renewal.owned.len());
        let mut claimed = Vec::new();
        if wanted > 0 {
            claimed = DB::claim_shards(
                writing.connection(),
                &self.queries,
                self.instance,
                lease,
                wanted,
            )
            .await
            .map_err(Error::database("claiming shards for the relay"))?;
        }
        writing.finish().await?;
        Ok((renewal, claimed))
    }

    /// Begins to work on shards that are new.
    fn take_over(&mut self, leases: &[ShardLease]) {
        let mut fresh = ShardSet::EMPTY;
        let mut cursor = i64::MAX;
        for &lease in leases {
            self.shards.add(lease);
            fresh.insert(lease.shard);
            cursor = cursor.min(lease.position);
        }
        if !fresh.is_empty() {
            tracing::debug!(shards = fresh.len(), from = cursor, "shards were claimed");
            self.outbox
                .metrics()
                .leases(LeaseChange::Claimed, fresh.len());
            self.scans.add(fresh, cursor);
            self.reading.hasten();
        }
    }

    /// Stores the positions and gives up every shard, for a shutdown.
    pub(super) async fn settle_and_give_up(&mut self) -> Result<(), Error> {
        if self.scans.has_gaps() {
            // The first one learns who is still writing and the second one settles what nobody
            // will fill, so that the next owner begins as far up as possible.
            self.read().await;
            self.read().await;
        }
        self.store_all_parked().await;
        self.advance().await?;
        let leases = self.shards.leases(self.shards.all());
        let mut writing = self.outbox.writing().await?;
        DB::release(writing.connection(), &self.queries, self.instance, &leases)
            .await
            .map_err(Error::database("giving up the relay's leases"))?;
        DB::leave(writing.connection(), &self.queries, self.instance)
            .await
            .map_err(Error::database("signing the relay off"))?;
        writing.finish().await?;
        self.outbox
            .metrics()
            .leases(LeaseChange::HandedOver, leases.len());
        self.outbox.metrics().shards(0);
        Ok(())
    }
}

/// How many of the shards an instance may own.
fn fair_share(instances: usize) -> usize {
    usize::from(SHARDS).div_ceil(instances.max(1))
}
