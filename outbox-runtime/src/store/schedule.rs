use std::future::Future;
use std::time::Duration;

use sqlx::Database;
use time::OffsetDateTime;

use super::{Backend, EventRow};

/// An event that goes into the log later.
#[derive(Debug)]
pub struct ScheduledRow {
    /// The event.
    pub event: EventRow,
    /// When.
    pub due: Due,
}

/// When a scheduled event is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Due {
    /// At that time.
    At(OffsetDateTime),
    /// So long after the database's clock reads while it is written.
    After(Duration),
}

/// What a move of due events did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Moved {
    /// So many are no longer scheduled.
    pub taken: u64,
    /// So many of them are in the log now; the keys of the others were there already.
    pub stored: u64,
}

/// Events that are scheduled for later.
pub trait ScheduleStore: Database {
    /// Takes the event with that business key out, in the connection's transaction; `false` if
    /// there is none, because it never was or is in the log already.
    ///
    /// A move of that very event by a relay is waited for.
    #[doc(hidden)]
    fn cancel_scheduled(
        connection: &mut Self::Connection,
        queries: &Self::Queries,
        event_type: &str,
        business_key: &str,
    ) -> impl Future<Output = Result<bool, sqlx::Error>> + Send
    where
        Self: Backend;

    /// In how many milliseconds the next event is due, by the database's clock; negative when it
    /// is overdue, nothing when there is none.
    #[doc(hidden)]
    fn next_due(
        connection: &mut Self::Connection,
        queries: &Self::Queries,
    ) -> impl Future<Output = Result<Option<i64>, sqlx::Error>> + Send
    where
        Self: Backend;

    /// Moves up to `most` events that are due into the log, the oldest first, atomically: one
    /// statement, or the transaction that the caller has begun.
    #[doc(hidden)]
    fn move_due(
        connection: &mut Self::Connection,
        queries: &Self::Queries,
        most: i64,
    ) -> impl Future<Output = Result<Moved, sqlx::Error>> + Send
    where
        Self: Backend;
}
