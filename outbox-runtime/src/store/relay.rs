use std::future::Future;
use std::time::Duration;

use sqlx::{Database, Pool};
use uuid::Uuid;

use super::stored_message::LogContent;
use super::writers::{Snapshot, Writers};
use super::{Names, Wake};
use crate::domain::{SHARDS, Shard};

/// A set of shards, as one bit each.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ShardSet(u64);

impl ShardSet {
    /// No shard.
    pub const EMPTY: Self = Self(0);

    /// Every shard.
    pub const ALL: Self = Self(u64::MAX >> (64 - SHARDS));

    /// Adds a shard. One outside 0..64 is left out: the tables refuse it.
    pub fn insert(&mut self, shard: Shard) {
        self.0 |= bit(shard);
    }

    /// Whether the shard is in.
    pub fn contains(self, shard: Shard) -> bool {
        self.0 & bit(shard) != 0
    }

    /// Whether there is none.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// How many there are.
    pub fn len(self) -> usize {
        self.0.count_ones() as usize
    }

    /// Those of both.
    #[must_use]
    pub fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Those that are not in `other`.
    #[must_use]
    pub fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    /// Those that are in, from the lowest.
    pub fn iter(self) -> impl Iterator<Item = Shard> {
        (0..64).filter(move |&shard| self.contains(shard))
    }

    /// The bits, shard 0 lowest, in the form in which databases take integers.
    pub fn bits(self) -> i64 {
        i64::from_ne_bytes(self.0.to_ne_bytes())
    }
}

impl FromIterator<Shard> for ShardSet {
    fn from_iter<I: IntoIterator<Item = Shard>>(shards: I) -> Self {
        let mut set = Self::EMPTY;
        for shard in shards {
            set.insert(shard);
        }
        set
    }
}

fn bit(shard: Shard) -> u64 {
    u32::try_from(shard)
        .ok()
        .filter(|&shard| shard < u32::from(SHARDS))
        .map_or(0, |shard| 1 << shard)
}

/// What to read of the log.
#[derive(Debug)]
pub struct LogRequest<'a> {
    /// All rows above this id.
    pub after: i64,
    /// And not above this one.
    pub up_to: i64,
    /// As well as all rows with these ids, both ends included, which lie at or below `after`.
    pub gaps: &'a [(i64, i64)],
    /// At most so many rows, the lowest ids.
    pub limit: usize,
    /// And of those as many as have so many bytes of payload and headers together.
    pub bytes: usize,
    /// Whether the first of them that has any may have more than that.
    pub first_is_free: bool,
    /// Rows of other shards come without their content.
    pub shards: ShardSet,
    /// Whether the read has to say which transactions it did not see.
    pub with_snapshot: bool,
    /// Whether the database is to look at the sizes before it sends anything, which takes it longer.
    /// Else a read throws away what there is no room for.
    pub measured: bool,
}

/// What a read of the log found.
#[derive(Debug)]
pub struct LogRead {
    /// The rows in the order of ids.
    pub rows: Vec<LogRow>,
    /// Whether there may be more rows than these, which did not fit into the limits.
    pub is_cut: bool,
    /// How many bytes the first row has that did not fit, if that was the reason.
    pub no_room_for: Option<usize>,
    /// Which transactions the read did not see: if it was asked for and there are rows.
    pub snapshot: Option<Snapshot>,
    /// Which ids the read has passed, where the rows don't say it.
    pub passed: Option<Passed>,
}

/// What a read says of ids whose rows it did not bring, as they belong to other shards.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Passed {
    /// The highest id; all up to it were looked at.
    pub last: i64,
    /// Ids between that have no row, both ends included, in their order.
    pub missing: Vec<(i64, i64)>,
}

impl Passed {
    /// The same for a read that ends earlier.
    pub(crate) fn up_to(mut self, last: i64) -> Self {
        self.last = last;
        self.missing.retain(|&(first, _)| first < last);
        self
    }
}

/// Where what a query found ends for the read.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Cut {
    /// So many of the rows are in.
    pub(crate) rows: usize,
    pub(crate) is_cut: bool,
    pub(crate) no_room_for: Option<usize>,
}

impl LogRequest<'_> {
    /// Looks at the last one of the rows that a query found: its bytes, and those of all rows up to
    /// it. The query ends with the first row that exceeds the bytes, which comes without content
    /// unless it is free.
    pub(crate) fn cut(&self, rows: usize, last: Option<(i64, i64)>) -> Cut {
        let (bytes, up_to_here) = last.unwrap_or_default();
        let is_over = usize::try_from(up_to_here).is_ok_and(|bytes| bytes > self.bytes);
        let is_free = self.first_is_free && bytes == up_to_here;
        if is_over && !is_free {
            return Cut {
                rows: rows.saturating_sub(1),
                is_cut: true,
                no_room_for: Some(usize::try_from(bytes).unwrap_or_default()),
            };
        }
        Cut {
            rows,
            is_cut: is_over || rows >= self.limit,
            no_room_for: None,
        }
    }
}

/// For how many rows there is room when a read begins, however many it asks for.
const ROWS_AT_FIRST: usize = 1_024;

/// The rows of a read that is not [`measured`](LogRequest::measured), as they come.
pub(crate) struct Arriving<'r> {
    request: &'r LogRequest<'r>,
    bytes: usize,
    rows: Vec<LogRow>,
    is_full: bool,
    no_room_for: Option<usize>,
}

impl<'r> Arriving<'r> {
    pub(crate) fn new(request: &'r LogRequest<'r>) -> Self {
        Self {
            request,
            bytes: 0,
            rows: Vec::with_capacity(request.limit.min(ROWS_AT_FIRST)),
            is_full: false,
            no_room_for: None,
        }
    }

    /// Takes in the next row, unless there was no room any more before it. So a read ends where its
    /// bytes do, whatever comes behind.
    ///
    /// # Errors
    /// When the row does not come after the last one: order is what all else rests on.
    pub(crate) fn take(&mut self, row: LogRow) -> Result<(), sqlx::Error> {
        if self.is_full {
            return Ok(());
        }
        if self.rows.last().is_some_and(|last| last.id >= row.id) {
            let text = format!("row {} of the log came out of order", row.id);
            return Err(sqlx::Error::Protocol(text));
        }
        let bytes = row.content.bytes();
        let is_free = self.request.first_is_free && self.bytes == 0;
        if self.bytes.saturating_add(bytes) > self.request.bytes && !is_free {
            self.is_full = true;
            self.no_room_for = Some(bytes);
            return Ok(());
        }
        self.bytes = self.bytes.saturating_add(bytes);
        self.is_full = self.bytes > self.request.bytes;
        self.rows.push(row);
        Ok(())
    }

    /// Whether what comes now is not taken in.
    pub(crate) const fn is_full(&self) -> bool {
        self.is_full
    }

    /// The read, if so many rows were looked at, and what it says of those that did not come.
    pub(crate) fn read(self, looked_at: usize, passed: Option<Passed>) -> LogRead {
        let is_full = self.is_full();
        let last = self.rows.last().map(|row| row.id);
        LogRead {
            is_cut: is_full || looked_at >= self.request.limit,
            no_room_for: self.no_room_for,
            snapshot: None,
            passed: match (passed, is_full) {
                (Some(passed), true) => last.map(|last| passed.up_to(last)),
                (passed, _) => passed,
            },
            rows: self.rows,
        }
    }
}

/// A row of the log.
#[derive(Debug)]
pub struct LogRow {
    /// Its place in the log.
    pub id: i64,
    /// Its shard.
    pub shard: Shard,
    /// What is in it, if the shard was asked for.
    pub content: LogContent,
}

/// A shard as its row says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ShardLease {
    /// The shard.
    pub shard: Shard,
    /// Counts the owners, so that a former one is recognised.
    pub epoch: i64,
    /// All of the shard up to this id is published.
    pub position: i64,
}

/// What an instance learns when it renews its leases.
#[derive(Debug)]
pub struct Renewal {
    /// How many instances are alive, this one included.
    pub instances: usize,
    /// The shards that this instance owns.
    pub owned: Vec<ShardLease>,
}

/// What was published since the last entry.
#[derive(Debug, Clone, Copy)]
pub struct JournalEntry {
    /// The lowest id.
    pub from: i64,
    /// The highest id.
    pub to: i64,
    /// How many messages.
    pub messages: usize,
}

/// What the relay asks of a database.
///
/// Each method is one statement, or one transaction that the caller has begun: a call that is
/// dropped or fails changes nothing or all, and repeating it is right.
pub trait RelayStore: Database {
    /// Whether ids become visible in their order, so that what is missing is missing for good.
    const COMMITS_IN_ID_ORDER: bool;

    /// The relay's SQL with the names of one outbox filled in.
    type RelayQueries: Send + Sync + 'static;

    /// Fills in the names.
    #[doc(hidden)]
    fn relay_queries(names: &Names) -> Self::RelayQueries;

    /// Reads the log in the order of ids, all of it in one snapshot.
    #[doc(hidden)]
    fn read_log(
        connection: &mut Self::Connection,
        queries: &Self::RelayQueries,
        request: &LogRequest<'_>,
    ) -> impl Future<Output = Result<LogRead, sqlx::Error>> + Send;

    /// The transactions that have begun to write to the log and have not ended.
    #[doc(hidden)]
    fn writers_in_flight(
        connection: &mut Self::Connection,
        queries: &Self::RelayQueries,
    ) -> impl Future<Output = Result<Writers, sqlx::Error>> + Send;

    /// Says that the instance lives, and renews the leases of its shards.
    #[doc(hidden)]
    fn renew(
        connection: &mut Self::Connection,
        queries: &Self::RelayQueries,
        instance: Uuid,
        lease: Duration,
    ) -> impl Future<Output = Result<Renewal, sqlx::Error>> + Send;

    /// Whether there is a shard that nobody owns, or whose owner's lease is over. Reads only.
    #[doc(hidden)]
    fn any_vacant(
        connection: &mut Self::Connection,
        queries: &Self::RelayQueries,
    ) -> impl Future<Output = Result<bool, sqlx::Error>> + Send;

    /// Takes up to `most` shards that nobody owns, or whose owner's lease is over.
    #[doc(hidden)]
    fn claim_shards(
        connection: &mut Self::Connection,
        queries: &Self::RelayQueries,
        instance: Uuid,
        lease: Duration,
        most: usize,
    ) -> impl Future<Output = Result<Vec<ShardLease>, sqlx::Error>> + Send;

    /// Moves positions forward where the instance still owns the shard in that epoch, says which
    /// those were, and enters into the journal what was published.
    #[doc(hidden)]
    fn advance(
        connection: &mut Self::Connection,
        queries: &Self::RelayQueries,
        instance: Uuid,
        shards: &[ShardLease],
        journal: Option<JournalEntry>,
    ) -> impl Future<Output = Result<ShardSet, sqlx::Error>> + Send;

    /// Gives shards up, at the positions given, where the instance still owns them.
    #[doc(hidden)]
    fn release(
        connection: &mut Self::Connection,
        queries: &Self::RelayQueries,
        instance: Uuid,
        shards: &[ShardLease],
    ) -> impl Future<Output = Result<(), sqlx::Error>> + Send;

    /// Takes the instance out of the count.
    #[doc(hidden)]
    fn leave(
        connection: &mut Self::Connection,
        queries: &Self::RelayQueries,
        instance: Uuid,
    ) -> impl Future<Output = Result<(), sqlx::Error>> + Send;

    /// Whether [`notify`](Self::notify) has any effect.
    const NOTIFIES: bool;

    /// Tells the relays of other processes that there are new rows, where the database can.
    #[doc(hidden)]
    fn notify(
        pool: &Pool<Self>,
        names: &Names,
    ) -> impl Future<Output = Result<(), sqlx::Error>> + Send;

    /// Signals `wake` whenever another process [`notify`](Self::notify)s, and once after every
    /// connect, until the connection breaks. Never returns where the database has no such thing.
    #[doc(hidden)]
    fn listen(
        pool: &Pool<Self>,
        names: &Names,
        wake: &Wake,
    ) -> impl Future<Output = sqlx::Error> + Send;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_read_ends_where_its_bytes_do() {
        let request = |first_is_free| LogRequest {
            after: 0,
            up_to: i64::MAX,
            gaps: &[],
            limit: 5,
            bytes: 100,
            first_is_free,
            shards: ShardSet::EMPTY,
            with_snapshot: false,
            measured: true,
        };
        let cut = |free, rows, last| {
            let cut = request(free).cut(rows, last);
            (cut.rows, cut.is_cut, cut.no_room_for)
        };
        assert_eq!(cut(true, 0, None), (0, false, None));
        assert_eq!(cut(true, 4, Some((10, 100))), (4, false, None));
        assert_eq!(cut(true, 5, Some((10, 40))), (5, true, None), "rows");
        assert_eq!(cut(true, 4, Some((10, 101))), (3, true, Some(10)), "bytes");
        assert_eq!(cut(true, 2, Some((500, 500))), (2, true, None), "free");
        assert_eq!(cut(false, 2, Some((500, 500))), (1, true, Some(500)));
        assert_eq!(cut(true, 2, Some((500, 501))), (1, true, Some(500)));
    }

    #[test]
    fn a_set_of_shards_holds_what_was_put_in() {
        let set: ShardSet = [0, 5, 63, 64, -1].into_iter().collect();
        assert_eq!(set.iter().collect::<Vec<_>>(), [0, 5, 63]);
        assert_eq!(set.len(), 3);
        assert!(set.bits() < 0, "shard 63 is the sign");
        let five: ShardSet = [5].into_iter().collect();
        assert_eq!(set.without(five).with(five), set);
        assert!(five.without(set).is_empty());
    }
}
