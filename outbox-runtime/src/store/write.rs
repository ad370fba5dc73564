use std::collections::{BTreeMap, HashSet};
use std::future::Future;

use sqlx::Database;

use super::persist::Change;
use super::{Backend, ConflictMark, Error, ScheduledRow, TableMapping};
use crate::domain::{MessageId, Shard};

/// One row of an aggregate's table that a commit writes.
///
/// Its arguments are bound already: all columns and the new version for [`Change::Insert`]; all
/// columns but the id, the new version, the id and the expected version for [`Change::Update`];
/// the id and the expected version for [`Change::Delete`].
#[derive(Debug)]
pub struct RowWrite {
    /// What happens to the row.
    pub change: Change,
    /// Where the row is.
    pub table: &'static TableMapping,
    /// The aggregate's type, for errors.
    pub aggregate_type: &'static str,
    /// The aggregate's id as text, for errors and for the order of the writes.
    pub aggregate_id: String,
    /// The version that the row must have, for errors.
    pub expected_version: i64,
    /// How many arguments stand before this row's in its argument list.
    pub first_argument: usize,
}

/// One event as it is stored.
#[derive(Debug)]
pub struct EventRow {
    /// The shard of its aggregate.
    pub shard: Shard,
    /// Its own identity.
    pub message_id: MessageId,
    /// Its name.
    pub event_type: &'static str,
    /// Its schema version.
    pub schema_version: u32,
    /// The aggregate's type, id and sequence.
    pub aggregate: Option<(&'static str, String, i64)>,
    /// The business key.
    pub business_key: Option<String>,
    /// The event as JSON text.
    pub payload: String,
}

/// What all events of one commit share.
#[derive(Debug, Clone, Default)]
pub struct SharedColumns {
    /// The service.
    pub producer: String,
    /// The business process.
    pub correlation_id: String,
    /// The cause.
    pub causation_id: Option<String>,
    /// W3C trace context.
    pub traceparent: Option<String>,
    /// W3C trace context.
    pub tracestate: Option<String>,
    /// Free headers.
    pub headers: BTreeMap<String, String>,
}

/// All that a commit writes at once.
pub struct WriteBatch<DB: Database> {
    /// Rows of aggregates, each at most once.
    pub rows: Vec<RowWrite>,
    /// The arguments of the rows: one list for all where the backend writes them in one statement,
    /// else one list a row.
    pub arguments: Vec<DB::Arguments>,
    /// The events, in the order in which they were raised.
    pub events: Vec<EventRow>,
    /// The events that are due later.
    pub scheduled: Vec<ScheduledRow>,
    /// What the events share.
    pub shared: SharedColumns,
}

impl<DB: Backend> WriteBatch<DB> {
    /// Nothing to write.
    pub fn new() -> Self {
        Self {
            rows: Vec::new(),
            arguments: Vec::new(),
            events: Vec::new(),
            scheduled: Vec::new(),
            shared: SharedColumns::default(),
        }
    }

    /// Whether there is nothing to write.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty() && self.events.is_empty() && self.scheduled.is_empty()
    }
}

impl<DB: Backend> Default for WriteBatch<DB> {
    fn default() -> Self {
        Self::new()
    }
}

/// Writes what a unit of work staged.
pub trait WriteStore: Database {
    /// Whether a commit of rows and events can be one statement with one argument list.
    const ONE_STATEMENT: bool;

    /// Writes the batch on `connection`.
    ///
    /// With [`ONE_STATEMENT`](Self::ONE_STATEMENT) it is atomic by itself, also outside a
    /// transaction; otherwise the caller has begun one and rolls it back on an error. Rows are
    /// written in the order of table and id, so that two commits can't deadlock, and the events
    /// after them.
    fn write(
        connection: &mut Self::Connection,
        queries: &Self::Queries,
        batch: WriteBatch<Self>,
    ) -> impl Future<Output = Result<(), Error>> + Send
    where
        Self: Backend;
}

impl RowWrite {
    /// The error for a row that was not as expected.
    pub(crate) fn refused(&self) -> Error {
        let aggregate_type = self.aggregate_type;
        let aggregate_id = self.aggregate_id.clone();
        match self.change {
            Change::Insert => Error::AlreadyExists {
                aggregate_type,
                aggregate_id,
            },
            Change::Update | Change::Delete => Error::VersionConflict {
                aggregate_type,
                aggregate_id,
                expected_version: self.expected_version,
                mark: ConflictMark,
            },
        }
    }
}

impl EventRow {
    /// What no other event may have, if it has one.
    pub(crate) fn key(&self) -> Option<(&str, &str)> {
        Some((self.event_type, self.business_key.as_deref()?))
    }
}

/// Why an event is a duplicate where no index of the database says it.
pub(crate) fn key_taken() -> sqlx::Error {
    sqlx::Error::InvalidArgument("its business key is scheduled or stored already".to_owned())
}

impl SharedColumns {
    /// The headers as JSON text; nothing for no headers.
    pub(crate) fn headers_json(&self) -> Option<String> {
        if self.headers.is_empty() {
            return None;
        }
        // A map of strings to strings is always JSON.
        serde_json::to_string(&self.headers).ok()
    }
}

impl<DB: Backend> WriteBatch<DB> {
    /// The error for a business key that is taken.
    pub(crate) fn duplicate_event(&self, source: sqlx::Error) -> Error {
        let events = self
            .events
            .iter()
            .chain(self.scheduled.iter().map(|row| &row.event));
        let keys = events
            .filter_map(|event| Some((event.event_type.to_owned(), event.business_key.clone()?)))
            .collect();
        Error::DuplicateEvent { keys, source }
    }

    /// Refuses a business key that is to be stored and scheduled at once: the tables' own indexes
    /// can't see that.
    pub(crate) fn check_keys(&self) -> Result<(), Error> {
        let stored: HashSet<_> = self.events.iter().filter_map(EventRow::key).collect();
        let is_both = |row: &ScheduledRow| row.event.key().is_some_and(|key| stored.contains(&key));
        if self.scheduled.iter().any(is_both) {
            return Err(self.duplicate_event(key_taken()));
        }
        Ok(())
    }
}
