use crate::domain::{ContextError, EncodeError, KeyError};

/// The cause of every [`Error::VersionConflict`].
///
/// An error of the user's that is `#[error(transparent)]` leaves the wrapped error itself out of
/// the chain of sources; this one stays in it, so the conflict is recognised all the same.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, thiserror::Error)]
#[error("the stored version is another")]
#[non_exhaustive]
pub struct ConflictMark;

/// A unit of work or its store failed.
///
/// Nothing of the unit of work is stored when a method of it fails: neither state nor events.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Another unit of work changed the aggregate after it was loaded.
    #[error(
        "{aggregate_type} {aggregate_id} was changed by another unit of work since version {expected_version} \
         was loaded; load it again and repeat the decision (`Outbox::retry` does that)"
    )]
    VersionConflict {
        /// The aggregate's type.
        aggregate_type: &'static str,
        /// The aggregate's id.
        aggregate_id: String,
        /// The version that was loaded.
        expected_version: i64,
        /// Marks the conflict in the chain of sources of an error that wraps this one transparently.
        #[source]
        mark: ConflictMark,
    },
    /// An added aggregate is stored already.
    #[error("{aggregate_type} {aggregate_id} exists already; load it instead of adding it")]
    AlreadyExists {
        /// The aggregate's type.
        aggregate_type: &'static str,
        /// The aggregate's id.
        aggregate_id: String,
    },
    /// No such aggregate is stored.
    #[error("{aggregate_type} {aggregate_id} does not exist; use `find` where it may be missing")]
    NotFound {
        /// The aggregate's type.
        aggregate_type: &'static str,
        /// The aggregate's id.
        aggregate_id: String,
    },
    /// An aggregate that was never stored was saved or removed.
    #[error("{aggregate_type} {aggregate_id} was never stored; use `add` for a new aggregate")]
    NotStored {
        /// The aggregate's type.
        aggregate_type: &'static str,
        /// The aggregate's id.
        aggregate_id: String,
    },
    /// An event with the same business key is stored already, or comes twice in the same commit.
    #[error(
        "an event with one of the business keys of this commit is stored or scheduled already, or \
         two events of the commit have the same one: {keys:?}"
    )]
    DuplicateEvent {
        /// The events' names and business keys of this commit, one of which is taken.
        keys: Vec<(String, String)>,
        /// What the database said.
        #[source]
        source: sqlx::Error,
    },
    /// An aggregate raised events after its last save, which the commit would have lost.
    #[error(
        "{aggregate_type} {aggregate_id} raised {count} event(s) that were never saved; \
         call `save` after the last change, or `discard_pending` on its root"
    )]
    UnsavedEvents {
        /// The aggregate's type.
        aggregate_type: &'static str,
        /// The aggregate's id.
        aggregate_id: String,
        /// How many events.
        count: usize,
    },
    /// The context can't travel in an envelope.
    #[error("the message context is not usable: {0}")]
    Context(#[from] ContextError),
    /// An event's payload can't be written.
    #[error(transparent)]
    Encode(#[from] EncodeError),
    /// An event's business key can't be written.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// A column's value can't be written.
    #[error("a column of {aggregate_type} can't be written; check the `Encode` of its fields")]
    Column {
        /// The aggregate's type.
        aggregate_type: &'static str,
        /// What the field said.
        #[source]
        source: sqlx::error::BoxDynError,
    },
    /// An earlier statement of the unit of work failed.
    #[error(
        "an earlier step of this unit of work failed; drop it or roll it back, and begin a new one"
    )]
    MustRollBack,
    /// A connection without a transaction was to be joined.
    #[error(
        "the connection has no transaction open; begin one on it (`pool.begin()`) and join that"
    )]
    NotInTransaction,
    /// An event was scheduled further ahead than databases can count.
    #[error("an event can be scheduled at most {years} years ahead; choose an earlier time")]
    TooFarAhead {
        /// The limit.
        years: u32,
    },
    /// A savepoint was released or rolled back before, or belongs to another unit of work.
    #[error("the savepoint is no longer open; take a new one")]
    SavepointClosed,
    /// A name can't be used.
    #[error(transparent)]
    Names(#[from] super::NamesError),
    /// A schema was given for a database without schemas.
    #[error("SQLite has no schemas; give the tables a prefix, or keep them in a file of their own")]
    NoSchemas,
    /// The tables are missing or older than this program.
    #[error(
        "the outbox tables are at migration {found} and this program needs {needed}; \
         run `Outbox::migrate` or the SQL of `Outbox::migrations`"
    )]
    NotMigrated {
        /// The newest migration that is applied; 0 for none.
        found: i64,
        /// The newest migration of this program.
        needed: i64,
    },
    /// The tables are newer than this program.
    #[error(
        "the outbox tables are at migration {found} and this program knows {known}; \
         deploy a newer version of the program"
    )]
    MigrationsTooNew {
        /// The newest migration that is applied.
        found: i64,
        /// The newest migration of this program.
        known: i64,
    },
    /// The write lock of a single-writer database was not free in time.
    #[error(
        "no write transaction could begin within {seconds} s; look for a unit of work that stays open"
    )]
    Busy {
        /// How long was waited.
        seconds: u64,
    },
    /// The database failed.
    #[error("the database failed while {doing}")]
    Database {
        /// What was going on.
        doing: &'static str,
        /// What the database said.
        #[source]
        source: sqlx::Error,
    },
}

impl Error {
    pub(crate) fn database(doing: &'static str) -> impl FnOnce(sqlx::Error) -> Self {
        move |source| Self::Database { doing, source }
    }

    /// Another unit of work was faster: loading again and deciding again may succeed.
    pub fn is_version_conflict(&self) -> bool {
        matches!(self, Self::VersionConflict { .. })
    }

    /// Whether the same unit of work may succeed at another time.
    pub fn is_transient(&self) -> bool {
        match self {
            Self::VersionConflict { .. } | Self::Busy { .. } => true,
            Self::Database { source, .. } => is_transient(source),
            _ => false,
        }
    }
}

/// A serialisation failure or a deadlock, which took the transaction back.
pub(crate) fn is_serialization_failure(error: &sqlx::Error) -> bool {
    let code = error.as_database_error().and_then(|error| error.code());
    matches!(code.as_deref(), Some("40001" | "40P01"))
}

/// Connection faults, serialisation failures, deadlocks, locks and a server that starts or stops.
fn is_transient(error: &sqlx::Error) -> bool {
    match error {
        sqlx::Error::Database(error) => match error.code() {
            // SQLSTATE classes 08 (connection), 25 (the transaction is over or aborted; the next one
            // is not), 40 (rollback), 53 (resources), 55 (object state), 57 (operator intervention),
            // and SQLite's BUSY and LOCKED with their extended codes.
            Some(code) if code.len() == 5 => ["08", "25", "40", "53", "55", "57"]
                .iter()
                .any(|class| code.starts_with(class)),
            Some(code) => code
                .parse::<u32>()
                .is_ok_and(|code| matches!(code & 0xff, 5 | 6)),
            None => false,
        },
        sqlx::Error::Io(_)
        | sqlx::Error::Tls(_)
        | sqlx::Error::Protocol(_)
        | sqlx::Error::PoolTimedOut
        | sqlx::Error::PoolClosed
        | sqlx::Error::WorkerCrashed => true,
        _ => false,
    }
}
