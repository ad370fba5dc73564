//! The inserts of events, as parts of a commit's one statement.

use std::fmt::Write as _;

use sqlx::error::BoxDynError;
use sqlx::postgres::{PgArguments, PgHasArrayType, Postgres};
use sqlx::{Arguments, Encode, Type};

use super::Queries;
use crate::store::{Due, EventRow, ScheduledRow, SharedColumns};

/// An insert without its source.
pub(super) struct Insert {
    sql: String,
    /// Gives a row for each event, with its `place` among them; none where a single event needs no
    /// row.
    rows: Option<String>,
}

impl Insert {
    /// The insert, done if all of the rows `w0`, `w1` and so on were written before, of which there
    /// are so many.
    pub(super) fn after(&self, written: usize) -> String {
        let mut sql = self.sql.clone();
        let rows = self.rows.as_deref();
        let only = match written {
            1 => Some("w0"),
            _ => None,
        };
        let sources: Vec<_> = only.into_iter().chain(rows).collect();
        if !sources.is_empty() {
            let _ = write!(sql, "\nFROM {}", sources.join(", "));
        }
        if let Some(last) = written.checked_sub(1).filter(|last| *last > 0) {
            let _ = write!(sql, "\nWHERE (SELECT count(*) FROM w{last}) = 1");
        }
        if rows.is_some() {
            sql.push_str("\nORDER BY e.place");
        }
        sql
    }
}

/// What the text of an insert depends on, besides the names of the outbox.
///
/// What all events share is one argument, and only what differs goes as an array: a statement
/// without `unnest` is planned once and takes a third less of the server's time, and each array
/// less is one that need not be taken apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct InsertShape {
    of: InsertOf,
    /// How many arguments stand before its own.
    first: usize,
    /// Which of its columns are arrays, a bit each.
    arrays: u32,
    /// Whether sequences are counted from the first one on.
    counts_sequences: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum InsertOf {
    Events,
    KeyedEvents,
    Scheduled,
}

/// The columns in the order of their arguments. The last two are of scheduled events only.
const COLUMNS: [(&str, &str); 17] = [
    ("message_id", "uuid"),
    ("shard", "smallint"),
    ("event_type", "text"),
    ("schema_version", "integer"),
    ("aggregate_type", "text"),
    ("aggregate_id", "text"),
    ("sequence", "bigint"),
    ("business_key", "text"),
    ("payload", "text"),
    ("correlation_id", "text"),
    ("causation_id", "text"),
    ("producer", "text"),
    ("traceparent", "text"),
    ("tracestate", "text"),
    ("headers", "text"),
    ("due_at", "timestamptz"),
    ("due_after", "double precision"),
];
const OF_SCHEDULED: usize = 2;

/// Binds the columns of events that go into the log.
pub(super) fn bind_events(
    arguments: &mut PgArguments,
    events: &[EventRow],
    shared: &SharedColumns,
) -> Result<InsertShape, BoxDynError> {
    let is_keyed = events.iter().any(|event| event.business_key.is_some());
    let of = match is_keyed {
        true => InsertOf::KeyedEvents,
        false => InsertOf::Events,
    };
    let mut columns = Columns::new(arguments, of);
    columns.add_events(&events.iter().collect::<Vec<_>>(), shared)?;
    Ok(columns.shape)
}

/// Binds the columns of events that are to be published later.
pub(super) fn bind_scheduled(
    arguments: &mut PgArguments,
    rows: &[ScheduledRow],
    shared: &SharedColumns,
) -> Result<InsertShape, BoxDynError> {
    let events: Vec<_> = rows.iter().map(|row| &row.event).collect();
    let mut columns = Columns::new(arguments, InsertOf::Scheduled);
    columns.add_events(&events, shared)?;
    let at = rows.iter().map(|row| match row.due {
        Due::At(time) => Some(time),
        Due::After(_) => None,
    });
    columns.add("due_at", rows.len() == 1, at)?;
    let after = rows.iter().map(|row| match row.due {
        Due::At(_) => None,
        Due::After(wait) => Some(wait.as_secs_f64()),
    });
    columns.add("due_after", rows.len() == 1, after)?;
    Ok(columns.shape)
}

impl InsertShape {
    /// The SQL with all columns in their places.
    pub(super) fn insert(self, queries: &Queries) -> Insert {
        let template = match self.of {
            InsertOf::Events => &queries.insert_events,
            InsertOf::KeyedEvents => &queries.insert_keyed_events,
            InsertOf::Scheduled => &queries.insert_scheduled,
        };
        let source = |column: &str| {
            let n = COLUMNS.iter().position(|(name, _)| *name == column)?;
            (!self.is_array(n)).then(|| match column {
                "sequence" if self.counts_sequences => format!("{} + e.place - 1", self.source(n)),
                _ => self.source(n),
            })
        };
        let sql = put_in(template, source);
        let columns = match self.of {
            InsertOf::Scheduled => COLUMNS.len(),
            _ => COLUMNS.len() - OF_SCHEDULED,
        };
        let arrays = (0..columns).filter(|&n| self.is_array(n));
        let (names, sources): (Vec<_>, Vec<_>) = arrays
            .filter_map(|n| Some((COLUMNS.get(n)?.0, self.source(n))))
            .unzip();
        if names.is_empty() {
            return Insert { sql, rows: None };
        }
        let (names, sources) = (names.join(", "), sources.join(", "));
        let rows = format!("unnest({sources}) WITH ORDINALITY AS e ({names}, place)");
        Insert {
            sql,
            rows: Some(rows),
        }
    }

    const fn is_array(self, column: usize) -> bool {
        self.arrays & (1 << column) != 0
    }

    /// The argument of a column.
    fn source(self, column: usize) -> String {
        let place = self.first + column + 1;
        let sql_type = COLUMNS.get(column).map_or("text", |(_, sql_type)| sql_type);
        let array = if self.is_array(column) { "[]" } else { "" };
        format!("${place}::{sql_type}{array}")
    }
}

/// Binds the columns of an insert, one after the other.
struct Columns<'a> {
    arguments: &'a mut PgArguments,
    shape: InsertShape,
    /// How many are bound.
    bound: usize,
}

impl<'a> Columns<'a> {
    fn new(arguments: &'a mut PgArguments, of: InsertOf) -> Self {
        let shape = InsertShape {
            of,
            first: arguments.len(),
            arrays: 0,
            counts_sequences: false,
        };
        Self {
            arguments,
            shape,
            bound: 0,
        }
    }

    fn add_events(
        &mut self,
        events: &[&EventRow],
        shared: &SharedColumns,
    ) -> Result<(), BoxDynError> {
        let all = || events.iter().copied();
        let is_one = events.len() == 1;
        // A check of keys needs a row for an event even if there is only one.
        let is_plain = self.shape.of == InsertOf::Events;
        // Few shapes, since each is a statement that every connection prepares.
        let of_one_kind = is_one || all_equal(all().map(|e| (e.event_type, e.schema_version)));
        // Events without one have a shard each.
        let aggregates =
            all().map(|e| (e.shard, e.aggregate.as_ref().map(|a| (a.0, a.1.as_str()))));
        let of_one_aggregate = is_one || all_equal(aggregates);
        let without_keys = is_one || all().all(|e| e.business_key.is_none());
        let ids = all().map(|e| e.message_id.as_uuid());
        self.add("message_id", is_one && is_plain, ids)?;
        self.add("shard", of_one_aggregate, all().map(|e| e.shard))?;
        self.add("event_type", of_one_kind, all().map(|e| e.event_type))?;
        // A version is written by hand and small; beyond i32 PostgreSQL's check would refuse it too.
        let version = |e: &EventRow| i32::try_from(e.schema_version).unwrap_or(i32::MAX);
        self.add("schema_version", of_one_kind, all().map(version))?;
        let aggregate = || all().map(|e| e.aggregate.as_ref());
        let kinds = aggregate().map(|a| Some(a?.0));
        self.add("aggregate_type", of_one_aggregate, kinds)?;
        let ids = aggregate().map(|a| Some(a?.1.as_str()));
        self.add("aggregate_id", of_one_aggregate, ids)?;
        let sequences = || aggregate().map(|a| Some(a?.2));
        let counts = !is_one && of_one_aggregate && are_consecutive(sequences());
        self.shape.counts_sequences = counts;
        self.add("sequence", is_one || counts, sequences())?;
        let keys = all().map(|e| e.business_key.as_deref());
        self.add("business_key", without_keys, keys)?;
        let payloads = all().map(|e| e.payload.as_str());
        self.add("payload", is_one, payloads)?;
        self.add_shared("correlation_id", shared.correlation_id.as_str())?;
        self.add_shared("causation_id", shared.causation_id.as_deref())?;
        self.add_shared("producer", shared.producer.as_str())?;
        self.add_shared("traceparent", shared.traceparent.as_deref())?;
        self.add_shared("tracestate", shared.tracestate.as_deref())?;
        self.add_shared("headers", shared.headers_json())
    }

    /// Adds a column as one argument where all events have the same value, else as an array.
    fn add<'q, T>(
        &mut self,
        column: &'static str,
        is_shared: bool,
        mut values: impl Iterator<Item = T>,
    ) -> Result<(), BoxDynError>
    where
        T: PgHasArrayType + Encode<'q, Postgres> + Type<Postgres> + 'q,
        Vec<T>: Encode<'q, Postgres> + Type<Postgres>,
    {
        match is_shared {
            true => values
                .next()
                .map_or(Ok(()), |value| self.add_shared(column, value)),
            false => {
                self.shape.arrays |= 1 << self.bound;
                self.add_shared(column, values.collect::<Vec<_>>())
            }
        }
    }

    /// Adds a column as one argument.
    fn add_shared<'q, T>(&mut self, column: &'static str, value: T) -> Result<(), BoxDynError>
    where
        T: Encode<'q, Postgres> + Type<Postgres> + 'q,
    {
        debug_assert_eq!(COLUMNS.get(self.bound).map(|(name, _)| *name), Some(column));
        self.bound += 1;
        self.arguments.add(value)
    }
}

fn all_equal<T: PartialEq>(mut values: impl Iterator<Item = T>) -> bool {
    match values.next() {
        Some(first) => values.all(|value| value == first),
        None => true,
    }
}

fn are_consecutive(mut sequences: impl Iterator<Item = Option<i64>>) -> bool {
    let Some(Some(mut last)) = sequences.next() else {
        return false;
    };
    sequences.all(|found| {
        let Some(found) = found.filter(|&found| last.checked_add(1) == Some(found)) else {
            return false;
        };
        last = found;
        true
    })
}

/// Replaces each `e.column` that has a source.
fn put_in(template: &str, source: impl Fn(&str) -> Option<String>) -> String {
    let mut sql = String::with_capacity(template.len() + 64);
    let mut rest = template;
    while let Some((before, after)) = rest.split_once("e.") {
        let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let end = after.find(|c| !is_word(c)).unwrap_or(after.len());
        let (column, behind) = after.split_at(end);
        sql.push_str(before);
        match source(column).filter(|_| !before.ends_with(is_word)) {
            Some(source) => sql.push_str(&source),
            None => {
                sql.push_str("e.");
                sql.push_str(column);
            }
        }
        rest = behind;
    }
    sql.push_str(rest);
    sql
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_single_event_needs_no_row_of_its_own() {
        let insert = |rows: Option<&str>| Insert {
            sql: "INSERT".to_owned(),
            rows: rows.map(str::to_owned),
        };
        assert_eq!(insert(None).after(0), "INSERT");
        assert_eq!(insert(None).after(1), "INSERT\nFROM w0");
        assert_eq!(
            insert(None).after(3),
            "INSERT\nWHERE (SELECT count(*) FROM w2) = 1"
        );
        assert_eq!(
            insert(Some("rows AS e")).after(1),
            "INSERT\nFROM w0, rows AS e\nORDER BY e.place"
        );
        assert_eq!(
            insert(Some("rows AS e")).after(2),
            "INSERT\nFROM rows AS e\nWHERE (SELECT count(*) FROM w1) = 1\nORDER BY e.place"
        );
    }

    #[test]
    fn sequences_are_counted_only_where_they_follow_each_other() {
        let are = |sequences: &[Option<i64>]| are_consecutive(sequences.iter().copied());
        assert!(are(&[Some(4), Some(5), Some(6)]));
        assert!(!are(&[Some(4), Some(6)]) && !are(&[Some(4), Some(4)]));
        assert!(!are(&[Some(4), None]) && !are(&[None, None]) && !are(&[]));
        assert!(!are(&[Some(i64::MAX), Some(i64::MIN)]));
    }

    #[test]
    fn columns_are_put_in_their_places() {
        let source = |column: &str| (column == "shard").then(|| "$4::smallint".to_owned());
        assert_eq!(
            put_in(
                "SELECT e.shard, e.sharded, e.place, table.shard, (e.shard)",
                source
            ),
            "SELECT $4::smallint, e.sharded, e.place, table.shard, ($4::smallint)"
        );
        assert_eq!(put_in("none", source), "none");
    }
}
