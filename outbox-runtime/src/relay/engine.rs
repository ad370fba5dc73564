use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::{JoinError, JoinSet};
use tokio::time::{Instant, sleep_until, timeout, timeout_at};
use uuid::Uuid;

use super::breaker::Breaker;
use super::chore::Chore;
use super::counters::Counters;
use super::dispatching::Call;
use super::lanes::Lanes;
use super::options::RelayOptions;
use super::parking::Parked;
use super::positions::Settling;
use super::publishing::{Done, Item, Key};
use super::rate::Bucket;
use super::reader::Reader;
use super::reading::Round;
use super::scan::Scans;
use super::shards::Shards;
use crate::broker::Publisher;
use crate::health::HealthHandle;
use crate::store::{Backend, Error, LogRead, LogRow, ShardSet, Wake};
use crate::telemetry::metrics::LeaseChange;
use crate::unit_of_work::Outbox;

/// One run of a relay: all that it holds in memory, and the loop that moves it.
///
/// Nothing in it is needed after a crash: positions and leases in the database are the truth.
pub(super) struct Engine<DB: Backend> {
    pub(super) outbox: Outbox<DB>,
    pub(super) queries: Arc<<DB as crate::store::RelayStore>::RelayQueries>,
    pub(super) parking_queries: <DB as crate::store::ParkingStore>::ParkingQueries,
    pub(super) backlog_queries: <DB as crate::store::BacklogStore>::BacklogQueries,
    pub(super) publisher: Arc<dyn Publisher>,
    pub(super) options: RelayOptions,
    pub(super) health: HealthHandle,
    pub(super) counters: Counters,
    pub(super) instance: Uuid,

    pub(super) shards: Shards,
    pub(super) scans: Scans,
    pub(super) lanes: Lanes<Key, Item>,
    pub(super) parked: Parked,
    pub(super) publishing: JoinSet<(Call, Done)>,
    pub(super) reader: Reader<DB>,
    /// The reads of all cursors that are under way, if any are.
    pub(super) round: Option<Round>,
    /// The one statement of them that runs, and what came of it.
    pub(super) asking: JoinSet<Result<LogRead, Error>>,
    pub(super) arrived: Option<Result<Result<LogRead, Error>, JoinError>>,
    /// Rows that were read and are not in the lanes yet, with the epoch of their shard.
    pub(super) fresh: Vec<(i64, LogRow)>,
    pub(super) fresh_bytes: usize,
    /// Positions that are being written down.
    pub(super) settling: Settling,
    /// What the calls in `publishing` hold.
    pub(super) in_flight_bytes: usize,
    pub(super) breaker: Breaker,
    pub(super) bucket: Option<Bucket>,

    /// Until when nobody else can own our shards, by this machine's monotonic clock.
    pub(super) lease_until: watch::Sender<Instant>,
    /// Since when the broker takes nothing, if messages failed since then that may yet succeed.
    pub(super) broker_failing_since: Option<Instant>,
    /// Whether the health says of messages that the broker does not take them.
    pub(super) broker_reported: bool,
    /// When the latest call began in which the broker took something.
    pub(super) last_taken: Option<Instant>,
    pub(super) leasing: Chore,
    pub(super) looking: Chore,
    pub(super) reading: Chore,
    pub(super) storing: Chore,
    pub(super) parking: Chore,
    pub(super) scheduling: Chore,
    pub(super) sampling: Chore,
    pub(super) poll_pause: Duration,
    /// How many rows a read asks for at most, going by how large messages were.
    pub(super) read_rows: usize,
    /// Whether the last read found messages for which there was no room.
    pub(super) are_large: bool,
    /// The bytes of a message that the last read found no room for.
    pub(super) no_room_for: usize,
    /// Whether a gap was closed that may have held back positions.
    pub(super) gap_closed: bool,
    /// When to store positions that moved without anything published.
    pub(super) tidying: Instant,

    pub(super) commits: watch::Receiver<u64>,
    pub(super) notices: watch::Receiver<u64>,
    pub(super) schedules: watch::Receiver<u64>,
    pub(super) letters: watch::Receiver<u64>,
}

impl<DB: Backend> Engine<DB> {
    pub(super) fn new(
        outbox: Outbox<DB>,
        queries: Arc<<DB as crate::store::RelayStore>::RelayQueries>,
        publisher: Arc<dyn Publisher>,
        options: RelayOptions,
        health: HealthHandle,
        counters: Counters,
        notices: &Wake,
    ) -> Self {
        let now = Instant::now();
        Self {
            commits: outbox.inner.wake.listen(),
            notices: notices.listen(),
            parking_queries: DB::parking_queries(outbox.names()),
            backlog_queries: DB::backlog_queries(outbox.names()),
            schedules: outbox.inner.schedules.listen(),
            instance: outbox.inner.clock.new_id(),
            letters: outbox.inner.letters.listen(),
            reader: Reader::new(outbox.clone(), Arc::clone(&queries)),
            outbox,
            queries,
            publisher,
            poll_pause: options.poll_min,
            breaker: Breaker::new(options.failed_calls, options.backoff),
            bucket: options.rate_limit.map(|rate| Bucket::new(rate, now)),
            sampling: Chore::new(
                "the relay can't look at its backlog",
                now + options.backlog_interval,
            ),
            options,
            health,
            counters,
            shards: Shards::default(),
            scans: Scans::default(),
            lanes: Lanes::default(),
            parked: Parked::default(),
            publishing: JoinSet::new(),
            round: None,
            asking: JoinSet::new(),
            arrived: None,
            fresh: Vec::new(),
            fresh_bytes: 0,
            settling: Settling::default(),
            in_flight_bytes: 0,
            lease_until: watch::Sender::new(now),
            broker_failing_since: None,
            broker_reported: false,
            last_taken: None,
            leasing: Chore::new("the relay's leases can't be renewed", now),
            looking: Chore::new("the relay can't look for free shards", now),
            reading: Chore::new("the relay can't read the outbox", now),
            storing: Chore::new("the relay can't store its positions", now),
            parking: Chore::new("the relay can't park messages", now),
            scheduling: Chore::new("the relay can't move scheduled events", now),
            read_rows: usize::MAX,
            are_large: true,
            no_room_for: 0,
            gap_closed: false,
            tidying: now,
        }
    }

    /// Works until `shutdown`, then finishes or gives back what is in flight.
    pub(super) async fn run_until(mut self, shutdown: impl Future<Output = ()> + Send) {
        tracing::info!(instance = %self.instance, "the relay starts");
        let mut shutdown = pin!(shutdown);
        let patience = self.options.shutdown_deadline;
        let deadline = loop {
            if let Some(deadline) = self.work_until(shutdown.as_mut()).await {
                break deadline;
            }
            tokio::select! {
                biased;
                () = &mut shutdown => break Instant::now() + patience,
                () = self.wait() => {}
            }
        };
        self.shut_down(deadline).await;
    }

    /// Does what is due. If the shutdown comes meanwhile, says when it has to be over.
    ///
    /// What is under way is then finished where that is possible: a statement that is dropped may
    /// have been done all the same, and its entry in the journal would be repeated.
    async fn work_until(
        &mut self,
        shutdown: Pin<&mut (impl Future<Output = ()> + Send)>,
    ) -> Option<Instant> {
        let patience = self.options.shutdown_deadline;
        let _at_work = self.health.at_work("a turn of the relay");
        let mut work = pin!(self.work());
        tokio::select! {
            () = &mut work => None,
            () = shutdown => {
                let deadline = Instant::now() + patience;
                let _ = timeout_at(deadline - patience / 2, work).await;
                Some(deadline)
            }
        }
    }

    /// Does what is due. It may be dropped anywhere: it changes memory only after its statements.
    async fn work(&mut self) {
        if self.looking.is_due() {
            self.look_for_vacant().await;
        }
        if self.leasing.is_due() {
            self.keep_leases().await;
        }
        if self.scheduling.is_due() {
            self.move_due().await;
        }
        self.go_on_reading().await;
        if self.round.is_none() {
            // Between two reads, as both take of the same room.
            if self.parking.is_due() && !self.parked.is_idle() {
                self.hold_fresh();
                self.keep_parking().await;
            }
            if self.reading.is_due() && self.has_room() {
                self.begin_reading().await;
            }
        }
        // The database looks for the next rows while these are sorted.
        self.hold_fresh();
        self.dispatch();
        if !self.shards.drained().is_empty() {
            // Nobody publishes them until they are given up.
            self.storing.hasten();
        }
        if self.storing.is_due() && !self.settling.is_under_way() && self.has_positions_to_store() {
            self.store_positions().await;
        }
        if self.sampling.is_due() {
            self.look_at_backlog().await;
        }
    }

    /// Waits for the next thing to do.
    async fn wait(&mut self) {
        let mut next = self.leasing.due().min(self.looking.due());
        next = next.min(self.scheduling.due());
        next = next.min(self.sampling.due());
        let is_reading = self.round.is_some();
        if !is_reading && self.has_room() {
            next = next.min(self.reading.due());
        }
        if !is_reading && !self.parked.is_idle() {
            next = next.min(self.parking.due());
        }
        let has_more =
            self.shards.have_news() || self.gap_closed || !self.shards.drained().is_empty();
        if has_more && !self.settling.is_under_way() {
            next = next.min(self.storing.due());
        }
        if let Some(dispatch) = self.next_dispatch() {
            next = next.min(dispatch);
        }
        tokio::select! {
            Some(done) = self.publishing.join_next() => {
                self.take_in(done);
                while let Some(done) = self.publishing.try_join_next() {
                    self.take_in(done);
                }
            }
            Some(read) = self.asking.join_next() => self.arrived = Some(read),
            moved = self.settling.next() => self.settled(moved),
            // What is signalled during a read is looked at after it.
            Ok(()) = self.commits.changed(), if !is_reading => self.read_soon(),
            Ok(()) = self.notices.changed(), if !is_reading => self.read_soon(),
            Ok(()) = self.schedules.changed() => self.scheduling.hasten(),
            Ok(()) = self.letters.changed() => {
                self.parked.look_again();
                self.parking.hasten();
            }
            () = sleep_until(next) => {}
        }
    }

    pub(super) fn read_soon(&mut self) {
        self.poll_pause = self.options.poll_min;
        self.reading.hasten();
    }

    /// Whether enough messages can be taken in to make a read worth its while. What is to be parked
    /// comes first, as parked messages are tried again only after it; unless that fails for now, and
    /// must not hold up the others.
    fn has_room(&self) -> bool {
        if self.parked.unstored() > 0 && !self.parking.is_failing() {
            return false;
        }
        let most = self.options.max_held_bytes;
        self.room() * 8 >= self.read_size()
            && self.room_bytes() >= self.no_room_for.max(most / 8).min(most)
            && !self.shards.all().is_empty()
    }

    pub(super) fn room(&self) -> usize {
        self.options
            .max_held
            .saturating_sub(self.lanes.held() + self.fresh.len() + self.parked.unstored())
    }

    /// How many bytes more may be held.
    pub(super) fn room_bytes(&self) -> usize {
        let most = self.options.max_held_bytes;
        most.saturating_sub(self.lanes.held_bytes() + self.fresh_bytes)
    }

    /// How many rows a read asks for.
    pub(super) fn read_size(&self) -> usize {
        self.options.max_held.min(
            self.options
                .batch_size
                .saturating_mul(self.options.max_in_flight),
        )
    }

    /// Forgets shards that belong to another relay by now.
    pub(super) fn lose_shards(&mut self, lost: ShardSet) {
        tracing::warn!(shards = lost.len(), "leases were lost to another relay");
        let metrics = self.outbox.metrics();
        metrics.leases(LeaseChange::Lost, lost.len());
        self.drop_shards(lost);
    }

    /// Forgets shards that are no longer ours.
    pub(super) fn drop_shards(&mut self, gone: ShardSet) {
        self.shards.remove(gone);
        self.scans.drop_shards(gone);
        self.lanes.drop_keys(|key| gone.contains(key.shard));
        self.parked.drop_shards(gone);
        self.outbox.metrics().shards(self.shards.len());
        self.report_parked();
    }

    async fn shut_down(mut self, deadline: Instant) {
        // A part of the time is kept for the positions and leases.
        let for_publishing = deadline - self.options.shutdown_deadline / 4;
        while let Ok(Some(done)) = timeout_at(for_publishing, self.publishing.join_next()).await {
            self.take_in(done);
        }
        if !self.publishing.is_empty() {
            tracing::warn!(
                calls = self.publishing.len(),
                "publishing was not over in time; it is repeated after the restart"
            );
            self.publishing.shutdown().await;
        }
        self.forget_reading();
        match timeout_at(deadline, self.settle_and_give_up()).await {
            Ok(Ok(())) => tracing::info!(instance = %self.instance, "the relay has stopped"),
            Ok(Err(error)) => {
                tracing::warn!(%error, "the relay stopped without giving back its leases; they run out");
            }
            Err(_) => {
                tracing::warn!("the relay stopped without giving back its leases; they run out")
            }
        }
    }

    /// Gives a piece of work with the database a limit, so that none can hold up the leases.
    pub(super) fn in_time<T>(
        &self,
        doing: &'static str,
        work: impl Future<Output = Result<T, Error>>,
    ) -> impl Future<Output = Result<T, Error>> {
        in_time(self.options.lease / 3, doing, work)
    }
}

/// What a task brought. One that did not run to its end, as the runtime shuts down or it panicked, has
/// failed as its statement would.
pub(super) fn of_task<T>(
    doing: &'static str,
    done: Result<Result<T, Error>, JoinError>,
) -> Result<T, Error> {
    done.unwrap_or_else(|error| {
        Err(Error::Database {
            doing,
            source: sqlx::Error::Io(std::io::Error::other(error)),
        })
    })
}

/// Gives a piece of work with the database a limit.
pub(super) async fn in_time<T>(
    limit: Duration,
    doing: &'static str,
    work: impl Future<Output = Result<T, Error>>,
) -> Result<T, Error> {
    timeout(limit, work).await.unwrap_or_else(|_| {
        Err(Error::Database {
            doing,
            source: sqlx::Error::Io(std::io::ErrorKind::TimedOut.into()),
        })
    })
}
