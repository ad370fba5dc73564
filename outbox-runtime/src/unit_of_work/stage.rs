use std::collections::HashSet;

use crate::clock::Clock;
use crate::domain::{Aggregate, AnyEvent, MessageContext, MessageId, UnsavedEvents, shard_of};
use crate::store::{
    Backend, Change, Due, Error, EventRow, RowWrite, ScheduledRow, SharedColumns, Stores,
    WriteBatch,
};
use crate::telemetry::spans::Subject;
use crate::telemetry::trace_context;

/// Rows of one statement: planning takes longer with the square of them, and thousands are beyond
/// the server's stack.
const MOST_ROWS: usize = 200;
/// Arguments of one statement, far enough below PostgreSQL's 65,535 for one more row.
const MOST_ARGUMENTS: usize = 30_000;

/// What a unit of work has staged and not yet written.
pub(crate) struct Stage<DB: Backend> {
    batch: WriteBatch<DB>,
    /// Message ids begin with its time.
    clock: Clock,
    /// Type and id of the rows in the batch.
    rows: HashSet<(&'static str, String)>,
    /// Aggregates that were handed out, and the events that they may have raised since.
    watched: Vec<(&'static str, String, UnsavedEvents)>,
}

impl<DB: Backend> Stage<DB> {
    pub(crate) fn new(service: &str, context: &MessageContext, clock: Clock) -> Self {
        let mut batch = WriteBatch::new();
        let trace = context.trace();
        batch.shared = SharedColumns {
            producer: service.to_owned(),
            correlation_id: context.correlation_id.clone().unwrap_or_default(),
            causation_id: context.causation_id.clone(),
            traceparent: trace.map(|trace| trace.traceparent.to_owned()),
            tracestate: trace.and_then(|trace| trace.tracestate).map(str::to_owned),
            headers: context.headers.clone(),
        };
        Self {
            batch,
            clock,
            rows: HashSet::new(),
            watched: Vec::new(),
        }
    }

    /// Whether a row of that aggregate waits to be written.
    pub(crate) fn holds<A: Aggregate>(&self, id: &str) -> bool {
        self.rows.contains(&(A::TYPE, id.to_owned()))
    }

    /// Whether the batch has as many rows and arguments as it may have.
    pub(crate) fn is_full(&self) -> bool {
        let arguments = self.batch.arguments.last().map_or(0, sqlx::Arguments::len);
        DB::ONE_STATEMENT && (self.batch.rows.len() >= MOST_ROWS || arguments >= MOST_ARGUMENTS)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.batch.is_empty()
    }

    pub(crate) fn events(&self) -> usize {
        self.batch.events.len()
    }

    /// Forgets the events after the first `events`.
    pub(crate) fn truncate_events(&mut self, events: usize) {
        self.batch.events.truncate(events);
    }

    pub(crate) fn watch<A: Aggregate>(&mut self, aggregate: &A) {
        self.watched.push((
            A::TYPE,
            aggregate.id().to_string(),
            aggregate.root().unsaved(),
        ));
    }

    /// Refuses to lose events that an aggregate raised and that were never saved.
    pub(crate) fn check_saved(&self) -> Result<(), Error> {
        let unsaved = self
            .watched
            .iter()
            .find(|(_, _, events)| events.count() > 0);
        match unsaved {
            Some((aggregate_type, id, events)) => Err(Error::UnsavedEvents {
                aggregate_type,
                aggregate_id: id.clone(),
                count: events.count(),
            }),
            None => Ok(()),
        }
    }

    /// Stages a row; its version has moved on already.
    pub(crate) fn row<A: Aggregate>(
        &mut self,
        aggregate: &A,
        change: Change,
        expected_version: i64,
    ) -> Result<(), Error>
    where
        DB: Stores<A>,
    {
        let Some(table) = <DB as Stores<A>>::table() else {
            return Ok(());
        };
        if !DB::ONE_STATEMENT || self.batch.arguments.is_empty() {
            self.batch.arguments.push(DB::Arguments::default());
        }
        let Some(arguments) = self.batch.arguments.last_mut() else {
            return Ok(());
        };
        let first_argument = sqlx::Arguments::len(arguments);
        DB::bind(aggregate, change, expected_version, arguments).map_err(|source| {
            Error::Column {
                aggregate_type: A::TYPE,
                source,
            }
        })?;
        let aggregate_id = aggregate.id().to_string();
        self.rows.insert((A::TYPE, aggregate_id.clone()));
        self.batch.rows.push(RowWrite {
            change,
            table,
            aggregate_type: A::TYPE,
            aggregate_id,
            expected_version,
            first_argument,
        });
        Ok(())
    }

    /// Stages an event, of an aggregate at a sequence or of none.
    pub(crate) fn event(
        &mut self,
        event: &dyn AnyEvent,
        aggregate: Option<(&'static str, String, i64)>,
    ) -> Result<(), Error> {
        let row = self.event_row(event, aggregate)?;
        self.batch.events.push(row);
        Ok(())
    }

    /// Stages an event that is due later.
    pub(crate) fn schedule(&mut self, event: &dyn AnyEvent, due: Due) -> Result<(), Error> {
        let event = self.event_row(event, None)?;
        self.batch.scheduled.push(ScheduledRow { event, due });
        Ok(())
    }

    fn event_row(
        &mut self,
        event: &dyn AnyEvent,
        aggregate: Option<(&'static str, String, i64)>,
    ) -> Result<EventRow, Error> {
        let message_id = MessageId::from_uuid(self.clock.new_id());
        let owner = aggregate.as_ref().map(|(kind, id, _)| (*kind, id.as_str()));
        let row = EventRow {
            shard: shard_of(owner, message_id),
            message_id,
            event_type: event.event_type(),
            schema_version: event.schema_version(),
            business_key: event.business_key()?,
            payload: event.encode()?,
            aggregate,
        };
        if self.batch.shared.correlation_id.is_empty() {
            // A new business process is known by its first message.
            self.batch.shared.correlation_id = message_id.to_string();
        }
        Ok(row)
    }

    /// What a span can say of all that is staged.
    pub(crate) fn subject(&self) -> Subject<'_> {
        let event = match &*self.batch.events {
            [event] => Some(event),
            _ => None,
        };
        let of_row = match &*self.batch.rows {
            [row] => Some((row.aggregate_type, &*row.aggregate_id)),
            _ => None,
        };
        let of_event = event.and_then(|event| event.aggregate.as_ref());
        Subject {
            message_id: event.map(|event| event.message_id),
            event_type: event.map(|event| event.event_type),
            aggregate: of_row.or(of_event.map(|(kind, id, _)| (*kind, &**id))),
        }
    }

    /// The business process, once an event is staged or if it was given.
    pub(crate) fn correlation_id(&self) -> &str {
        &self.batch.shared.correlation_id
    }

    /// Has what is written from now on carry this trace context.
    pub(crate) fn carry(&mut self, trace: trace_context::Current) {
        self.batch.shared.traceparent = Some(trace.traceparent);
        self.batch.shared.tracestate = trace.tracestate;
    }

    /// Takes out what may be written at any time, and leaves the events of the log for the commit.
    pub(crate) fn take_rows(&mut self) -> WriteBatch<DB> {
        self.rows.clear();
        let mut rows = WriteBatch::new();
        rows.shared = self.batch.shared.clone();
        rows.rows = std::mem::take(&mut self.batch.rows);
        rows.scheduled = std::mem::take(&mut self.batch.scheduled);
        rows.arguments = std::mem::take(&mut self.batch.arguments);
        rows
    }

    /// Takes everything out.
    pub(crate) fn take(&mut self) -> WriteBatch<DB> {
        let mut all = self.take_rows();
        all.events = std::mem::take(&mut self.batch.events);
        all
    }
}
