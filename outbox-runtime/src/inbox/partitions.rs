//! Partitions of a broker that does not share them out itself, leased by the instances of a service.
//!
//! Each instance leases an equal part and renews its leases by the database's clock; what it has too
//! much of it stops reading, finishes, and gives up; what a crashed one had is taken when its lease
//! ends. An instance reads a partition only while, by its own monotonic clock from before the renewal
//! was sent, the lease holds.
//!
//! # Why an instance that was paused does no harm
//!
//! When it wakes up it may still handle what it took, beside the new owner, who got the same messages
//! again. Each message has one effect all the same, since both go through the inbox. And the order
//! stays: each of the two handles an aggregate's messages one after another, from one that no earlier
//! message is missing before, and goes on only after the message is handled, by either, or parked in
//! the database for both.

use std::collections::BTreeMap;
use std::time::Duration;

use tokio::sync::{Notify, mpsc, watch};
use tokio::time::{Instant, sleep_until, timeout};
use tokio_util::sync::CancellationToken;
use tracing::{debug, warn};
use uuid::Uuid;

use crate::backoff::Backoff;
use crate::error_text;
use crate::health::{HealthHandle, Milestone};
use crate::store::{Backend, Error, Member};
use crate::unit_of_work::Outbox;

/// The part of the health that speaks of the leases.
const LEASES: &str = "the consumer's leases";
/// How often an instance looks whether partitions have become free, however long leases are.
const LOOK: Duration = Duration::from_millis(400);

/// How long giving up everything may take at a shutdown, whose deadline may be over by then.
const LEAVING: Duration = Duration::from_secs(1);

/// The leases of one instance.
pub(super) struct Leases<DB: Backend> {
    outbox: Outbox<DB>,
    queries: DB::PartitionQueries,
    group: String,
    instance: Uuid,
    lease: Duration,
    partitions: u16,
    backoff: Backoff,
    health: HealthHandle,
    /// Told once it is known that all partitions are other members'.
    subscribed: watch::Sender<bool>,
    held: BTreeMap<u16, Held>,
    /// Until when nobody else can own our partitions, by this machine's monotonic clock.
    until: Instant,
    /// When the leases are renewed, and when free partitions are looked for.
    renewing: Instant,
    looking: Instant,
    failures: u32,
}

/// A partition that is read by this instance.
#[derive(Debug, Clone)]
pub(super) struct Held {
    pub(super) partition: u16,
    /// Ends the reading.
    pub(super) stop: CancellationToken,
    /// Set when nothing of it is in work any more.
    pub(super) ended: CancellationToken,
}

impl<DB: Backend> Leases<DB> {
    pub(super) fn new(
        outbox: &Outbox<DB>,
        partitions: u16,
        lease: Duration,
        backoff: Backoff,
        health: &HealthHandle,
        subscribed: &watch::Sender<bool>,
    ) -> Self {
        let now = Instant::now();
        Self {
            outbox: outbox.clone(),
            queries: DB::partition_queries(outbox.names()),
            group: outbox.service().to_owned(),
            instance: outbox.inner.clock.new_id(),
            lease,
            partitions,
            backoff,
            health: health.clone(),
            subscribed: subscribed.clone(),
            held: BTreeMap::new(),
            until: now,
            renewing: now,
            looking: now,
            failures: 0,
        }
    }

    /// Keeps the leases until `stop`, and has what is new read through `begin`. `ended` tells that a
    /// partition's last message is done.
    pub(super) async fn keep(
        &mut self,
        begin: &mpsc::Sender<Held>,
        ended: &Notify,
        stop: &CancellationToken,
    ) {
        loop {
            let turn = self.turn(begin, stop);
            if stop.run_until_cancelled(turn).await.is_none() {
                return;
            }
            let next = self.renewing.min(self.looking);
            tokio::select! {
                biased;
                () = stop.cancelled() => return,
                () = ended.notified() => {}
                () = sleep_until(next.min(self.until.max(Instant::now()))), if !self.held.is_empty() => {}
                () = sleep_until(next), if self.held.is_empty() => {}
            }
        }
    }

    /// Gives up everything, for a shutdown.
    pub(super) async fn leave(&mut self) {
        // Not only those that are known: the answer to a claim may have been lost.
        let all: Vec<u16> = (0..self.partitions).collect();
        let leaving = async {
            let mut transaction = self.outbox.begin_write().await?;
            let connection = transaction.connection();
            DB::release_partitions(connection, &self.queries, self.member(), &all)
                .await
                .map_err(Error::database("giving up partitions"))?;
            DB::leave_group(connection, &self.queries, self.member())
                .await
                .map_err(Error::database("leaving the consumer group"))?;
            transaction.commit().await
        };
        let left = timeout(LEAVING.min(self.lease / 3), leaving).await;
        if !matches!(left, Ok(Ok(()))) {
            warn!("the consumer stopped without giving back its leases; they run out");
        }
    }

    async fn turn(&mut self, begin: &mpsc::Sender<Held>, stop: &CancellationToken) {
        if Instant::now() >= self.until && !self.held.is_empty() {
            warn!(
                partitions = self.held.len(),
                "leases ended before they were renewed"
            );
            self.forget(|_| true);
        }
        let done = match self.in_time(self.give_up_ended()).await {
            Ok(gone) => {
                self.held.retain(|partition, _| !gone.contains(partition));
                self.look_and_renew(begin, stop).await
            }
            Err(error) => Err(error),
        };
        let now = Instant::now();
        match done {
            Ok(()) => {
                self.failures = 0;
                self.health.recover(LEASES);
            }
            Err(error) => {
                self.failures = self.failures.saturating_add(1);
                let reason = error_text::of_error(&error);
                warn!(reason, failures = self.failures, "leases can't be kept");
                self.health.degrade(
                    LEASES,
                    format!("the consumer's leases can't be kept: {reason}"),
                );
                // Leases must not run out over a long wait.
                let wait = self.backoff.delay(self.failures).min(self.lease / 6);
                (self.renewing, self.looking) = (now + wait, now + wait);
            }
        }
    }

    /// Gives up the partitions of which nothing is in work any more, and says which those were.
    async fn give_up_ended(&self) -> Result<Vec<u16>, Error> {
        let ended = self.held.values().filter(|held| held.ended.is_cancelled());
        let ended: Vec<u16> = ended.map(|held| held.partition).collect();
        if !ended.is_empty() {
            let mut transaction = self.outbox.begin_write().await?;
            DB::release_partitions(
                transaction.connection(),
                &self.queries,
                self.member(),
                &ended,
            )
            .await
            .map_err(Error::database("giving up partitions"))?;
            transaction.commit().await?;
            debug!(partitions = ended.len(), "partitions were given up");
        }
        Ok(ended)
    }

    async fn look_and_renew(
        &mut self,
        begin: &mpsc::Sender<Held>,
        stop: &CancellationToken,
    ) -> Result<(), Error> {
        let now = Instant::now();
        if self.looking <= now {
            if self.in_time(self.any_vacant()).await? {
                self.renewing = now;
            }
            self.looking = Instant::now() + LOOK.min(self.lease / 12);
        }
        if self.renewing > now {
            return Ok(());
        }
        // Before the statement is sent, so that the lease ends here before it ends there.
        let sent = Instant::now();
        let (members, owned) = self.in_time(self.renew_and_claim()).await?;
        self.until = sent + self.lease;
        self.renewing = sent + self.lease / 3;
        self.forget(|partition| !owned.contains(&partition));
        if owned.is_empty() {
            self.subscribed.send_replace(true);
            self.health.reach(Milestone::Subscribed);
        }
        for partition in owned {
            if self.held.contains_key(&partition) {
                continue;
            }
            let held = Held {
                partition,
                stop: stop.child_token(),
                ended: CancellationToken::new(),
            };
            if begin.send(held.clone()).await.is_ok() {
                self.held.insert(partition, held);
            }
        }
        // Those with the highest numbers go, as claims begin with the lowest.
        let share = fair_share(self.partitions, members);
        for held in self.held.values().skip(share) {
            held.stop.cancel();
        }
        Ok(())
    }

    async fn renew_and_claim(&self) -> Result<(usize, Vec<u16>), Error> {
        let mut transaction = self.outbox.begin_write().await?;
        let connection = transaction.connection();
        let membership = DB::renew_partitions(connection, &self.queries, self.member())
            .await
            .map_err(Error::database("renewing the consumer's leases"))?;
        let mut owned = membership.owned;
        let wanted = fair_share(self.partitions, membership.members).saturating_sub(owned.len());
        if wanted > 0 {
            let claimed =
                DB::claim_partitions(connection, &self.queries, self.member(), wanted).await;
            owned.extend(claimed.map_err(Error::database("claiming partitions"))?);
        }
        transaction.commit().await?;
        Ok((membership.members, owned))
    }

    async fn any_vacant(&self) -> Result<bool, Error> {
        let mut connection = self.outbox.connection().await?;
        DB::any_partition_vacant(&mut connection, &self.queries, self.member())
            .await
            .map_err(Error::database("looking for free partitions"))
    }

    /// Stops reading what is ours no longer. What is in work is finished: the inbox sees to it that
    /// nothing of it counts twice.
    fn forget(&mut self, is_lost: impl Fn(u16) -> bool) {
        self.held.retain(|&partition, held| {
            let lost = is_lost(partition);
            if lost {
                held.stop.cancel();
            }
            !lost
        });
    }

    fn member(&self) -> Member<'_> {
        Member {
            group: &self.group,
            instance: self.instance,
            lease: self.lease,
            partitions: self.partitions,
        }
    }

    /// Gives a piece of work with the database a limit, so that none can hold up the leases.
    async fn in_time<T>(&self, work: impl Future<Output = Result<T, Error>>) -> Result<T, Error> {
        timeout(self.lease / 3, work).await.unwrap_or_else(|_| {
            Err(Error::Database {
                doing: "keeping the consumer's leases",
                source: sqlx::Error::Io(std::io::ErrorKind::TimedOut.into()),
            })
        })
    }
}

/// How many of the partitions a member may own.
fn fair_share(partitions: u16, members: usize) -> usize {
    usize::from(partitions).div_ceil(members.max(1))
}
