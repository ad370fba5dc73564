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

/// The insert of events into the log.
pub(super) fn insert_events(
    queries: &Queries,
    arguments: &mut PgArguments,
    events: &[EventRow],
    shared: &SharedColumns,
) -> Result<Insert, BoxDynError> {
    let is_keyed = events.iter().any(|event| event.business_key.is_some());
    let mut columns = Columns::new(arguments, is_keyed);
    columns.add_events(&events.iter().collect::<Vec<_>>(), shared)?;
    Ok(columns.insert(match is_keyed {
        true => &queries.insert_keyed_events,
        false => &queries.insert_events,
    }))
}

/// The insert of events that are to be published later.
pub(super) fn insert_scheduled(
    queries: &Queries,
    arguments: &mut PgArguments,
    rows: &[ScheduledRow],
    shared: &SharedColumns,
) -> Result<Insert, BoxDynError> {
    let events: Vec<_> = rows.iter().map(|row| &row.event).collect();
    let mut columns = Columns::new(arguments, true);
    columns.add_events(&events, shared)?;
    let at = rows.iter().map(|row| match row.due {
        Due::At(time) => Some(time),
        Due::After(_) => None,
    });
    columns.add("due_at", "timestamptz", rows.len() == 1, at)?;
    let after = rows.iter().map(|row| match row.due {
        Due::At(_) => None,
        Due::After(wait) => Some(wait.as_secs_f64()),
    });
    columns.add("due_after", "double precision", rows.len() == 1, after)?;
    Ok(columns.insert(&queries.insert_scheduled))
}

/// Where the columns of an insert come from.
///
/// What all events share is one argument, and only what differs goes as an array: a statement
/// without `unnest` is planned once and takes a third less of the server's time, and each array
/// less is one that need not be taken apart.
struct Columns<'a> {
    arguments: &'a mut PgArguments,
    /// Whether the SQL needs a row for an event even if there is only one.
    needs_rows: bool,
    shared: Vec<(&'static str, String)>,
    arrays: Vec<(&'static str, String)>,
}

impl<'a> Columns<'a> {
    const fn new(arguments: &'a mut PgArguments, needs_rows: bool) -> Self {
        Self {
            arguments,
            needs_rows,
            shared: Vec::new(),
            arrays: Vec::new(),
        }
    }

    fn add_events(
        &mut self,
        events: &[&EventRow],
        shared: &SharedColumns,
    ) -> Result<(), BoxDynError> {
        let all = || events.iter().copied();
        let is_one = events.len() == 1;
        // Few shapes, since each is a statement that every connection prepares.
        let of_one_kind = is_one || all_equal(all().map(|e| (e.event_type, e.schema_version)));
        let aggregate = |e: &EventRow| e.aggregate.as_ref().map(|a| (a.0, a.1.clone()));
        // Events without one have a shard each.
        let of_one_aggregate = is_one || all_equal(all().map(|e| (e.shard, aggregate(e))));
        let without_keys = is_one || all().all(|e| e.business_key.is_none());
        let ids = all().map(|e| e.message_id.as_uuid());
        self.add("message_id", "uuid", is_one && !self.needs_rows, ids)?;
        self.add(
            "shard",
            "smallint",
            of_one_aggregate,
            all().map(|e| e.shard),
        )?;
        self.add(
            "event_type",
            "text",
            of_one_kind,
            all().map(|e| e.event_type),
        )?;
        // A version is written by hand and small; beyond i32 PostgreSQL's check would refuse it too.
        let version = |e: &EventRow| i32::try_from(e.schema_version).unwrap_or(i32::MAX);
        self.add("schema_version", "integer", of_one_kind, all().map(version))?;
        let aggregate = || all().map(|e| e.aggregate.as_ref());
        let kinds = aggregate().map(|a| Some(a?.0));
        self.add("aggregate_type", "text", of_one_aggregate, kinds)?;
        let ids = aggregate().map(|a| Some(a?.1.as_str()));
        self.add("aggregate_id", "text", of_one_aggregate, ids)?;
        let sequences = aggregate().map(|a| Some(a?.2));
        self.add("sequence", "bigint", is_one, sequences)?;
        let keys = all().map(|e| e.business_key.as_deref());
        self.add("business_key", "text", without_keys, keys)?;
        let payloads = all().map(|e| e.payload.as_str());
        self.add("payload", "text", is_one, payloads)?;
        self.add_shared("correlation_id", "text", shared.correlation_id.as_str())?;
        self.add_shared("causation_id", "text", shared.causation_id.as_deref())?;
        self.add_shared("producer", "text", shared.producer.as_str())?;
        self.add_shared("traceparent", "text", shared.traceparent.as_deref())?;
        self.add_shared("tracestate", "text", shared.tracestate.as_deref())?;
        self.add_shared("headers", "text", shared.headers_json())
    }

    /// Adds a column as one argument where all events have the same value, else as an array.
    fn add<'q, T>(
        &mut self,
        column: &'static str,
        sql_type: &str,
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
                .map_or(Ok(()), |value| self.add_shared(column, sql_type, value)),
            false => self.add_array(column, sql_type, values.collect()),
        }
    }

    fn add_shared<'q, T>(
        &mut self,
        column: &'static str,
        sql_type: &str,
        value: T,
    ) -> Result<(), BoxDynError>
    where
        T: Encode<'q, Postgres> + Type<Postgres> + 'q,
    {
        self.arguments.add(value)?;
        let source = format!("${}::{sql_type}", self.arguments.len());
        self.shared.push((column, source));
        Ok(())
    }

    fn add_array<'q, T>(
        &mut self,
        column: &'static str,
        sql_type: &str,
        values: Vec<T>,
    ) -> Result<(), BoxDynError>
    where
        Vec<T>: Encode<'q, Postgres> + Type<Postgres> + 'q,
    {
        self.arguments.add(values)?;
        let source = format!("${}::{sql_type}[]", self.arguments.len());
        self.arrays.push((column, source));
        Ok(())
    }

    /// The SQL with all columns in their places.
    fn insert(self, template: &str) -> Insert {
        let source = |column: &str| {
            let found = self.shared.iter().find(|(name, _)| *name == column);
            found.map(|(_, source)| source.as_str())
        };
        let sql = put_in(template, source);
        if self.arrays.is_empty() {
            return Insert { sql, rows: None };
        }
        let (names, sources): (Vec<_>, Vec<_>) = self
            .arrays
            .iter()
            .map(|(name, source)| (*name, source.as_str()))
            .unzip();
        let (names, sources) = (names.join(", "), sources.join(", "));
        let rows = format!("unnest({sources}) WITH ORDINALITY AS e ({names}, place)");
        Insert {
            sql,
            rows: Some(rows),
        }
    }
}

fn all_equal<T: PartialEq>(mut values: impl Iterator<Item = T>) -> bool {
    match values.next() {
        Some(first) => values.all(|value| value == first),
        None => true,
    }
}

/// Replaces each `e.column` that has a source.
fn put_in<'s>(template: &str, source: impl Fn(&str) -> Option<&'s str>) -> String {
    let mut sql = String::with_capacity(template.len() + 64);
    let mut rest = template;
    while let Some((before, after)) = rest.split_once("e.") {
        let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let end = after.find(|c| !is_word(c)).unwrap_or(after.len());
        let (column, behind) = after.split_at(end);
        sql.push_str(before);
        match source(column).filter(|_| !before.ends_with(is_word)) {
            Some(source) => sql.push_str(source),
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
    fn columns_are_put_in_their_places() {
        let source = |column: &str| (column == "shard").then_some("$4::smallint");
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
