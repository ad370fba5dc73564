use std::time::Duration;

use tokio::time::{Instant, sleep};

use crate::error_text;
use crate::fault::{self, Point};
use crate::relay::engine::Engine;
use crate::relay::parking::Piece;
use crate::relay::publishing::{Item, Key};
use crate::store::{
    Backend, DueRequest, DueRow, Error, LogContent, ParkedLane, ShardLease, ShardSet,
};

/// The part of health that speaks of parked messages.
const PARKED: &str = "the relay's parked messages";
/// How often the parked lanes are read again, to learn what operators took away.
const REFRESH: Duration = Duration::from_secs(10);

impl<DB: Backend> Engine<DB> {
    /// Writes down what is to be parked and what became of parked messages, and takes those in
    /// whose turn it is.
    pub(in crate::relay) async fn keep_parking(&mut self) {
        let done = match self.store_parked().await {
            Ok(true) => self.retry_parked().await,
            // The leases may have to be renewed in between.
            Ok(false) => Ok(Duration::ZERO),
            Err(error) => Err(error),
        };
        match done {
            Ok(pause) => self.parking.succeeded(Instant::now() + pause, &self.health),
            Err(error) => self
                .parking
                .failed(&error, self.options.backoff, &self.health),
        }
        self.report_parked();
    }

    /// Writes down a piece of what is to be parked and of what became of parked messages, and says
    /// whether that was all. Positions move past the rows only now.
    pub(in crate::relay) async fn store_parked(&mut self) -> Result<bool, Error> {
        if self.parked.is_stored() {
            return Ok(true);
        }
        let passed = fault::at(Point::BeforePark).await;
        passed.map_err(|fault| Error::database("parking messages")(fault.into()))?;
        let piece = self.parked.next_piece();
        let began = Instant::now();
        let written = self
            .in_time("parking messages", self.write_parked(&piece))
            .await;
        let (owned, empty) = written.inspect_err(|_| self.parked.shrink_piece())?;
        let mut lost = ShardSet::EMPTY;
        for row in self.parked.to_park.iter().take(piece.rows) {
            if owned.contains(row.shard) {
                self.shards.parked(row.shard, row.epoch, row.id);
            } else {
                lost.insert(row.shard);
            }
        }
        self.parked.stored(&piece, empty);
        if began.elapsed() < self.options.lease / 12 {
            self.parked.grow_piece();
        }
        if !lost.is_empty() {
            self.lose_shards(lost);
        }
        Ok(self.parked.is_stored())
    }

    /// Writes down all of it, and tries until it is dropped: a statement that was given up may run on
    /// in the server, and others wait for its locks.
    pub(in crate::relay) async fn store_all_parked(&mut self) {
        let mut failures = 0;
        loop {
            match self.store_parked().await {
                Ok(true) => return,
                Ok(false) => failures = 0,
                Err(error) => {
                    failures += 1;
                    let reason = error_text::of_error(&error);
                    tracing::warn!(failures, %reason, "parking messages before the relay stops");
                    sleep(self.options.backoff.delay(failures)).await;
                }
            }
        }
    }

    async fn write_parked(&self, piece: &Piece) -> Result<(ShardSet, Vec<ParkedLane>), Error> {
        let queries = &self.parking_queries;
        let mut writing = self.outbox.writing().await?;
        let mut owned = ShardSet::EMPTY;
        let rows = self.parked.to_park.get(..piece.rows).unwrap_or_default();
        if !rows.is_empty() {
            owned = DB::park(writing.connection(), queries, self.instance, rows)
                .await
                .map_err(Error::database("parking messages"))?;
        }
        let mut empty = Vec::new();
        let outcomes = piece.lanes.iter();
        let outcomes: Vec<_> = outcomes
            .filter_map(|key| self.parked.outcomes.get(key))
            .collect();
        if !outcomes.is_empty() {
            empty = DB::settle_parked(writing.connection(), queries, self.instance, &outcomes)
                .await
                .map_err(Error::database("settling parked messages"))?;
        }
        writing.finish().await?;
        Ok((owned, empty))
    }

    /// Takes in the parked messages whose turn it is, and says when to look again.
    async fn retry_parked(&mut self) -> Result<Duration, Error> {
        let now = Instant::now();
        if self.parked.is_refresh_due(now, REFRESH) {
            let lanes = self.read_lanes(self.shards.all()).await?;
            let out = &self.lanes;
            self.parked.refresh(lanes, now, |key| out.contains(key));
        }
        let pause = self.options.poll_max;
        if self.parked.lanes.is_empty() {
            return Ok(pause);
        }
        let out = self.parked.out(|key| self.lanes.contains(key));
        let batch = self.options.batch_size;
        let bytes = self.room_for_parked();
        // While the broker takes nothing, what is out stays out.
        if out > batch || self.room() == 0 || bytes == 0 {
            return Ok(pause);
        }
        let rows = self.read_due(batch + out, bytes).await;
        let rows = rows.inspect_err(|_| self.parked.shrink_piece())?;
        self.parked.looked(now);
        let all = rows.len() < batch;
        let any = self.take_in_due(rows);
        Ok(if any && !all {
            Duration::ZERO
        } else {
            self.parked.until_due().min(pause)
        })
    }

    /// Says whether there was any that is not out already.
    fn take_in_due(&mut self, rows: Vec<DueRow>) -> bool {
        let mut any = false;
        // A lane's rows stand together: whether it is out shows at the first one.
        let mut current: Option<(Key, bool)> = None;
        for row in rows {
            let Some(epoch) = self.shards.epoch(row.shard) else {
                continue;
            };
            let content = match row.content {
                LogContent::NotRead => continue,
                LogContent::Message(message) => Ok(message),
                LogContent::Unreadable(unreadable) => Err(unreadable),
            };
            let key = Key {
                shard: row.shard,
                lane: row.lane.into(),
            };
            let is_out = match &current {
                Some((last, is_out)) if *last == key => *is_out,
                _ => self.lanes.contains(&key),
            };
            if !is_out {
                any = true;
                self.parked.lanes.insert(key.clone());
                let item = Item {
                    id: row.id,
                    epoch,
                    content,
                    failed: (row.attempts, row.failing_for),
                };
                self.lanes.push(key.clone(), item);
            }
            current = Some((key, is_out));
        }
        any
    }

    /// How many bytes of parked messages more may be held: together no more than half of all. They
    /// can fail in place, and if they filled the memory, nothing would be read that shows that the
    /// broker is well.
    fn room_for_parked(&self) -> usize {
        let held = self.parked.lanes.iter().map(|key| self.lanes.bytes(key));
        let most = (self.options.max_held_bytes / 2).max(1);
        most.saturating_sub(held.sum()).min(self.room_bytes())
    }

    async fn read_due(&self, lanes: usize, bytes: usize) -> Result<Vec<DueRow>, Error> {
        let request = DueRequest {
            shards: self.shards.all().without(self.shards.draining()),
            lanes,
            behind: self.options.batch_size.min(self.parked.piece) - 1,
            most: self.room(),
            bytes,
        };
        let read = async {
            let mut connection = self.outbox.connection().await?;
            DB::parked_due(&mut connection, &self.parking_queries, request)
                .await
                .map_err(Error::database("reading parked messages"))
        };
        self.in_time("reading parked messages", read).await
    }

    async fn read_lanes(&self, shards: ShardSet) -> Result<Vec<ParkedLane>, Error> {
        let read = async {
            let mut writing = self.outbox.writing().await?;
            let lanes = DB::parked_lanes(writing.connection(), &self.parking_queries, shards)
                .await
                .map_err(Error::database("reading what is parked"))?;
            writing.finish().await?;
            Ok(lanes)
        };
        self.in_time("reading what is parked", read).await
    }

    /// Learns which lanes of shards that were just claimed are parked.
    pub(in crate::relay) async fn load_parked(
        &mut self,
        leases: &[ShardLease],
    ) -> Result<(), Error> {
        let shards: ShardSet = leases.iter().map(|lease| lease.shard).collect();
        if shards.is_empty() {
            return Ok(());
        }
        let lanes = self.read_lanes(shards).await?;
        if !lanes.is_empty() {
            self.parked.add(lanes);
            self.parking.hasten();
            self.report_parked();
        }
        Ok(())
    }

    /// Tells the health how much is parked.
    pub(in crate::relay) fn report_parked(&mut self) {
        let report = self.parked.report();
        if report == self.parked.reported {
            return;
        }
        match &report {
            Some(text) => self.health.degrade(PARKED, text.clone()),
            None => self.health.recover(PARKED),
        }
        self.parked.reported = report;
    }
}
