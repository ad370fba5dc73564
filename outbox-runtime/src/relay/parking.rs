//! Parking: what can't go out now waits in a table of its own, and everything else goes on.
//!
//! A *lane* is the messages of one ordering key. When one of them fails, it and all later ones
//! that are held go to `outbox_parked` together, and whatever is read of the lane afterwards goes
//! there too, behind them. The head is tried again when it is due by the database's clock; once it
//! is out, the next one is the head. When nothing of the lane is left, it flows directly again.
//!
//! # When a lane is parked
//!
//! At once, when the broker refuses a message for good, and for a row that is no message. After a
//! failure that may pass, only when the message fails once more although the broker has taken
//! something in a call that began in between: otherwise the broker is down as a whole, and parking would
//! move the entire log. Until then the message is retried in place, and attempts do not count
//! towards the limits of the [`RetryPolicy`](crate::retry::RetryPolicy). The same holds for a head
//! that is retried: its attempts count, and are kept, only while the broker takes others.
//!
//! # Why nothing is lost and the order stays
//!
//! - The owner of a shard alone parks, in one statement that locks the shard's row and checks its
//!   epoch. So either it is over before another relay can claim the shard, or it does nothing.
//! - A position moves past parked rows only after that statement has committed.
//! - A new owner learns which lanes are parked after its claim and before its first read. What it
//!   reads of them again goes behind the others, or is there already.
//! - From the decision to park on, no message of the lane goes to the publisher until the rows are
//!   stored and their turn comes. A statement whose answer was lost is repeated and changes nothing.
//! - A message is deleted from the table after the publisher confirmed it. A crash in between
//!   repeats it, at the same place in its lane's order.

mod failing;
mod storing;

pub(super) use failing::Attempt;

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use tokio::time::Instant;

use super::publishing::Key;
use crate::store::{FailedRow, LaneOutcome, ParkedFailure, ParkedLane, ShardSet, ToPark};

/// How many rows are written down at once, to begin with and at most.
const FIRST_PIECE: usize = 250;
const LARGEST_PIECE: usize = 1000;

/// The parked lanes of this instance's shards, and what is to be written down about them.
#[derive(Debug)]
pub(super) struct Parked {
    /// Every lane of which a row is in the table or in `to_park`.
    lanes: HashSet<Key>,
    to_park: Vec<ToPark>,
    outcomes: HashMap<Key, LaneOutcome>,
    /// How many rows are written at once, and how many of a lane are read: fewer after one that
    /// took too long, as it would take too long again and again.
    piece: usize,
    /// When a head may be due that failed here. Others, and what operators change, are looked for
    /// from time to time.
    next_due: Option<Instant>,
    /// When the lanes were last read again.
    refreshed: Option<Instant>,
    /// An operator changed what is parked.
    is_stale: bool,
    /// The last failure of a message that was parked.
    last_failure: Option<String>,
    /// What the health was told.
    reported: Option<String>,
}

impl Default for Parked {
    fn default() -> Self {
        Self {
            lanes: HashSet::new(),
            to_park: Vec::new(),
            outcomes: HashMap::new(),
            piece: FIRST_PIECE,
            next_due: None,
            refreshed: None,
            is_stale: false,
            last_failure: None,
            reported: None,
        }
    }
}

impl Parked {
    /// Whether the lane's messages wait in the table.
    pub(super) fn holds(&self, key: &Key) -> bool {
        !self.lanes.is_empty() && self.lanes.contains(key)
    }

    /// Whether there is nothing to do.
    pub(super) fn is_idle(&self) -> bool {
        self.lanes.is_empty() && self.to_park.is_empty() && self.outcomes.is_empty()
    }

    /// How many rows are still to be parked.
    pub(super) fn unstored(&self) -> usize {
        self.to_park.len()
    }

    /// Parks a row behind the others of its lane.
    pub(super) fn wait_behind(&mut self, key: Key, epoch: i64, id: i64) {
        self.to_park.push(ToPark {
            id,
            shard: key.shard,
            epoch,
            lane: key.lane.to_string(),
            failure: None,
        });
    }

    /// Forgets shards that are no longer ours.
    pub(super) fn drop_shards(&mut self, gone: ShardSet) {
        self.lanes.retain(|key| !gone.contains(key.shard));
        self.to_park.retain(|row| !gone.contains(row.shard));
        self.outcomes.retain(|key, _| !gone.contains(key.shard));
    }

    /// Messages of a parked lane were published.
    pub(super) fn published(&mut self, key: &Key, taken: &[(i64, i64)]) {
        if let Some(&(_, epoch)) = taken.first() {
            let ids = taken.iter().map(|&(id, _)| id);
            self.outcome(key, epoch).published.extend(ids);
        }
    }

    /// A row of the log failed: it is parked, and what is behind it in the same lane.
    fn park(&mut self, key: Key, epoch: i64, id: i64, failure: ParkedFailure) {
        self.retry_at(&failure);
        self.to_park.push(ToPark {
            id,
            shard: key.shard,
            epoch,
            lane: key.lane.to_string(),
            failure: Some(failure),
        });
        self.lanes.insert(key);
    }

    /// A parked row failed again.
    fn failed(&mut self, key: &Key, epoch: i64, row: FailedRow) {
        self.retry_at(&row.failure);
        if let Some(lane) = &row.goes_to {
            self.lanes.insert(Key {
                shard: key.shard,
                lane: lane.as_str().into(),
            });
        }
        self.outcome(key, epoch).failed = Some(row);
    }

    fn outcome(&mut self, key: &Key, epoch: i64) -> &mut LaneOutcome {
        self.outcomes
            .entry(key.clone())
            .or_insert_with(|| LaneOutcome {
                shard: key.shard,
                epoch,
                lane: key.lane.to_string(),
                published: Vec::new(),
                failed: None,
            })
    }

    fn retry_at(&mut self, failure: &ParkedFailure) {
        let due = failure
            .retry_after
            .and_then(|wait| Instant::now().checked_add(wait));
        self.next_due = match (self.next_due, due) {
            (Some(next), Some(due)) => Some(next.min(due)),
            (next, due) => next.or(due),
        };
    }

    fn is_stored(&self) -> bool {
        self.to_park.is_empty() && self.outcomes.is_empty()
    }

    /// What to write down next. What became of a lane comes after all rows that are to be parked: it
    /// is empty only when nothing of it is still to come.
    fn next_piece(&self) -> Piece {
        let rows = self.to_park.len().min(self.piece);
        let mut room = self.piece;
        let outcomes = self.outcomes.iter().take_while(|(_, outcome)| {
            let fits = room > 0;
            room = room.saturating_sub(outcome.published.len() + 1);
            fits
        });
        let settles = rows == self.to_park.len();
        Piece {
            rows,
            lanes: outcomes
                .filter(|_| settles)
                .map(|(key, _)| key.clone())
                .collect(),
        }
    }

    /// The piece is written down, and these lanes are empty.
    fn stored(&mut self, piece: &Piece, empty: Vec<ParkedLane>) {
        self.to_park.drain(..piece.rows);
        for key in &piece.lanes {
            self.outcomes.remove(key);
        }
        for lane in empty {
            self.lanes.remove(&Key::from(lane));
        }
    }

    /// A piece was done with most of its time to spare.
    fn grow_piece(&mut self) {
        self.piece = self.piece.saturating_mul(2).min(LARGEST_PIECE);
    }

    /// A statement took too long, or failed for another reason.
    fn shrink_piece(&mut self) {
        self.piece = (self.piece / 8).max(1);
    }

    fn add(&mut self, lanes: Vec<ParkedLane>) {
        self.lanes.extend(lanes.into_iter().map(Key::from));
    }

    fn is_refresh_due(&mut self, now: Instant, pause: Duration) -> bool {
        let since = *self.refreshed.get_or_insert(now);
        !self.lanes.is_empty() && (self.is_stale || now.duration_since(since) >= pause)
    }

    /// The lanes are to be read again.
    pub(super) fn look_again(&mut self) {
        self.is_stale = true;
    }

    /// These lanes are in the table, and nothing waits to be written down. A lane of which messages
    /// are out stays until that is over: if an operator has discarded them, a failure must not make
    /// them messages of the log again.
    fn refresh(&mut self, lanes: Vec<ParkedLane>, now: Instant, is_out: impl Fn(&Key) -> bool) {
        self.lanes.retain(is_out);
        self.add(lanes);
        self.refreshed = Some(now);
        self.is_stale = false;
    }

    /// How many lanes have messages at the publisher, or on their way to it.
    fn out(&self, is_out: impl Fn(&Key) -> bool) -> usize {
        self.lanes.iter().filter(|key| is_out(key)).count()
    }

    /// What is due was read.
    fn looked(&mut self, now: Instant) {
        self.next_due = self.next_due.filter(|&due| due > now);
    }

    /// What is to be said of it, if anything is parked.
    fn report(&self) -> Option<String> {
        let lanes = self.lanes.len();
        let mut text = format!("{lanes} aggregate(s) have parked messages, see outbox_parked");
        if let Some(last) = &self.last_failure {
            text.push_str("; the last failure: ");
            text.push_str(last);
        }
        (lanes > 0).then_some(text)
    }

    fn until_due(&self) -> Duration {
        self.next_due.map_or(Duration::MAX, |due| {
            due.saturating_duration_since(Instant::now())
        })
    }
}

/// What is written down in one transaction.
struct Piece {
    /// How many rows of the first that are to be parked.
    rows: usize,
    /// Of which lanes to write down what became of their messages.
    lanes: Vec<Key>,
}

impl From<ParkedLane> for Key {
    fn from(ParkedLane { shard, lane }: ParkedLane) -> Self {
        Self {
            shard,
            lane: lane.into(),
        }
    }
}

#[cfg(test)]
mod tests;
