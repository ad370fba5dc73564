use std::future::Future;
use std::time::Duration;

use sqlx::Database;
use uuid::Uuid;

use super::Names;

/// A table that grows until something removes what is finished.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Finished {
    /// Events under the position of every shard.
    Outbox,
    /// What was published when.
    Journal,
    /// What was handled.
    Inbox,
    /// Dead letters that operators gave up.
    Discarded,
    /// What operators did to letters that are neither parked nor kept any more.
    Notes,
}

impl Finished {
    /// The table's name in metrics.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Outbox => "outbox",
            Self::Journal => "journal",
            Self::Inbox => "inbox",
            Self::Discarded => "discarded",
            Self::Notes => "notes",
        }
    }
}

/// One bounded step through a table.
#[derive(Debug, Clone, Copy)]
pub struct Sweep {
    /// Which one.
    pub table: Finished,
    /// Rows that are younger stay.
    pub age: Duration,
    /// So many of the newest rows stay, whatever their age.
    pub floor: i64,
    /// How many rows to look at.
    pub chunk: i64,
    /// Where the step before came to; 0 for the first.
    pub after: i64,
    /// Whether the rows go to the archive.
    pub archive: bool,
}

/// What a step did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Swept {
    /// Where the next step begins.
    pub up_to: i64,
    /// How many rows were removed.
    pub removed: u64,
    /// Whether a further step may find more.
    pub more: bool,
}

/// Removes what is finished.
pub trait RetentionStore: Database {
    /// The SQL with the names of one outbox filled in.
    type RetentionQueries: Send + Sync + 'static;

    /// Fills in the names.
    #[doc(hidden)]
    fn retention_queries(names: &Names) -> Self::RetentionQueries;

    /// Takes or renews the lease of the one cleaner, by the database's clock; `false` if another
    /// instance has it.
    #[doc(hidden)]
    fn lease_cleaner(
        connection: &mut Self::Connection,
        queries: &Self::RetentionQueries,
        instance: Uuid,
        lease: Duration,
    ) -> impl Future<Output = Result<bool, sqlx::Error>> + Send;

    /// Gives the lease back, if the instance has it.
    #[doc(hidden)]
    fn release_cleaner(
        connection: &mut Self::Connection,
        queries: &Self::RetentionQueries,
        instance: Uuid,
    ) -> impl Future<Output = Result<(), sqlx::Error>> + Send;

    /// Removes some rows, the oldest first, atomically: one statement, or the transaction that the
    /// caller has begun. It is right whatever runs beside it: the lease only spares work.
    #[doc(hidden)]
    fn sweep(
        connection: &mut Self::Connection,
        queries: &Self::RetentionQueries,
        sweep: &Sweep,
    ) -> impl Future<Output = Result<Swept, sqlx::Error>> + Send;
}
