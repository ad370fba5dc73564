use std::future::Future;
use std::time::Duration;

use sqlx::Database;
use uuid::Uuid;

use super::relay::ShardSet;
use super::stored_message::LogContent;
use super::{Names, RelayStore};
use crate::domain::Shard;

/// How many failed attempts of a parked message are kept, the newest.
pub const ATTEMPTS_KEPT: i64 = 50;

/// The rows of one ordering key that are parked, and whose they are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParkedLane {
    /// The shard.
    pub shard: Shard,
    /// The ordering key as text.
    pub lane: String,
}

/// What a failed attempt leads to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParkedFailure {
    /// Why it failed: bounded and clean.
    pub cause: String,
    /// When it is tried again, from now on by the database's clock; it is dead without.
    pub retry_after: Option<Duration>,
}

impl ParkedFailure {
    /// The state's name in the table.
    pub(crate) fn state(&self) -> &'static str {
        match self.retry_after {
            Some(_) => "failing",
            None => "dead",
        }
    }
}

/// A row of the log that is to be parked.
#[derive(Debug)]
pub struct ToPark {
    /// Its place in the log.
    pub id: i64,
    /// Its shard.
    pub shard: Shard,
    /// The epoch in which the shard is owned.
    pub epoch: i64,
    /// The ordering key as text.
    pub lane: String,
    /// Its first failure; without one it waits behind others of its lane.
    pub failure: Option<ParkedFailure>,
}

impl ToPark {
    /// The state's name in the table.
    pub(crate) fn state(&self) -> &'static str {
        self.failure
            .as_ref()
            .map_or("waiting", ParkedFailure::state)
    }
}

/// Which parked rows to read.
#[derive(Debug, Clone, Copy)]
pub struct DueRequest {
    /// Of these shards.
    pub shards: ShardSet,
    /// The heads of so many lanes.
    pub lanes: usize,
    /// So many rows behind a head that has not failed yet.
    pub behind: usize,
    /// So many rows in all.
    pub most: usize,
    /// So many bytes of payload and headers in all, but at least one row.
    pub bytes: usize,
}

/// A parked row whose turn it is.
#[derive(Debug)]
pub struct DueRow {
    /// Its place in the log.
    pub id: i64,
    /// Its shard.
    pub shard: Shard,
    /// Its lane.
    pub lane: String,
    /// How often it failed.
    pub attempts: u32,
    /// How long it has been failing.
    pub failing_for: Duration,
    /// What is in it.
    pub content: LogContent,
}

/// What became of a lane's rows.
#[derive(Debug)]
pub struct LaneOutcome {
    /// The shard.
    pub shard: Shard,
    /// The epoch in which the shard is owned.
    pub epoch: i64,
    /// The lane.
    pub lane: String,
    /// Those that were published.
    pub published: Vec<i64>,
    /// The one behind them, if it failed.
    pub failed: Option<FailedRow>,
}

/// A parked row that failed again.
#[derive(Debug)]
pub struct FailedRow {
    /// Its place in the log.
    pub id: i64,
    /// How often it has failed now.
    pub attempts: u32,
    /// What that leads to.
    pub failure: ParkedFailure,
    /// A lane of its own to which it goes, so that the others go on without it.
    pub goes_to: Option<String>,
}

/// What the relay asks of a database about parked messages.
///
/// Each method is one statement, or part of a transaction that the caller has begun: a call that is
/// dropped or fails changes nothing or all, and repeating it is right.
pub trait ParkingStore: Database + RelayStore {
    /// The SQL with the names of one outbox filled in.
    type ParkingQueries: Send + Sync + 'static;

    /// Fills in the names.
    #[doc(hidden)]
    fn parking_queries(names: &Names) -> Self::ParkingQueries;

    /// All lanes of these shards of which anything is parked.
    #[doc(hidden)]
    fn parked_lanes(
        connection: &mut Self::Connection,
        queries: &Self::ParkingQueries,
        shards: ShardSet,
    ) -> impl Future<Output = Result<Vec<ParkedLane>, sqlx::Error>> + Send;

    /// Parks rows where the instance owns the shard in that epoch, and says which shards it does
    /// own. A row that is parked already stays where it is unless it failed.
    #[doc(hidden)]
    fn park(
        connection: &mut Self::Connection,
        queries: &Self::ParkingQueries,
        instance: Uuid,
        rows: &[ToPark],
    ) -> impl Future<Output = Result<ShardSet, sqlx::Error>> + Send;

    /// The heads that are due by the database's clock, each with what is behind it where it has
    /// not failed yet. A lane's rows stand together and in order.
    #[doc(hidden)]
    fn parked_due(
        connection: &mut Self::Connection,
        queries: &Self::ParkingQueries,
        request: DueRequest,
    ) -> impl Future<Output = Result<Vec<DueRow>, sqlx::Error>> + Send;

    /// Takes out what was published, writes down what failed, and makes the next of each lane its
    /// head, where the instance owns the shard in that epoch. Says which lanes are empty now.
    #[doc(hidden)]
    fn settle_parked(
        connection: &mut Self::Connection,
        queries: &Self::ParkingQueries,
        instance: Uuid,
        outcomes: &[&LaneOutcome],
    ) -> impl Future<Output = Result<Vec<ParkedLane>, sqlx::Error>> + Send;
}
