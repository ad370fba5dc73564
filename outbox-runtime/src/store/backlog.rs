use std::future::Future;
use std::time::Duration;

use sqlx::Database;

use super::Names;

/// What waits in the log, as one look at the database found it.
///
/// *Pending* is a row that lies above the stored position of its shard: it is neither known to be
/// published nor parked. So these figures are about the log alone. What is parked or scheduled has
/// left it, or is not in it yet, and does not count.
///
/// Positions are stored a few milliseconds after a message was published, up to a fifth of a second
/// where the database is slow, and where an aggregate of a shard is quiet they follow every five
/// seconds. They do not move past an id that an open
/// transaction may still fill, although what lies above it is published at once: as long as such a
/// transaction stays open, what was published above it counts as pending too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Backlog {
    /// How many rows are pending, as far as the look went.
    pub pending: u64,
    /// Whether the look ended before the log did, so that there are at least that many.
    pub is_more: bool,
    /// The pending row with the lowest id, if any is pending.
    pub oldest: Option<OldestPending>,
    /// How far the lowest stored position of all shards lags behind the newest row that is
    /// visible, in ids: an upper bound of the rows in between. 0 when nothing lies above it.
    pub watermark_lag: u64,
}

/// The first row of the log that is pending.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct OldestPending {
    /// Its place in the log.
    pub id: i64,
    /// How long ago it occurred, by the database's clock; zero for a time that lies ahead.
    pub age: Duration,
}

/// Figures about the log that a backend reads in one statement.
pub trait BacklogStore: Database {
    /// The SQL with the names of one outbox filled in.
    type BacklogQueries: Send + Sync + 'static;

    /// Fills in the names.
    #[doc(hidden)]
    fn backlog_queries(names: &Names) -> Self::BacklogQueries;

    /// Looks at up to `most` rows above the lowest position: its cost does not grow with the log.
    ///
    /// One statement, one snapshot, no lock.
    #[doc(hidden)]
    fn backlog(
        connection: &mut Self::Connection,
        queries: &Self::BacklogQueries,
        most: u32,
    ) -> impl Future<Output = Result<Backlog, sqlx::Error>> + Send;
}
