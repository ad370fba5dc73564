use std::fmt::Write as _;

use sqlx::postgres::{PgArguments, PgConnection, Postgres};
use sqlx::{Arguments, AssertSqlSafe, Row};
use uuid::Uuid;

use super::Queries;
use crate::store::{
    Change, Due, Error, EventRow, RowWrite, ScheduledRow, SharedColumns, WriteBatch, WriteStore,
    key_taken, quote,
};

/// Begins the text that a failed check puts into the error, so that it is told from any other.
const CONFLICT: &str = "outbox-conflict:";
/// The same, in the SQL that inserts events with business keys.
const DUPLICATE: &str = "outbox-duplicate:";

impl WriteStore for Postgres {
    const ONE_STATEMENT: bool = true;

    /// One statement: each row is a data-modifying CTE that runs only if the one before changed
    /// its row, and the events are fed from the last. The chain fixes the order of the row locks.
    ///
    /// One row that does not match leaves nothing written, so its count tells all. With several
    /// rows, an earlier one may have been written when a later one does not match: then the main
    /// query raises an error, which takes everything back.
    async fn write(
        connection: &mut PgConnection,
        queries: &Queries,
        mut batch: WriteBatch<Self>,
    ) -> Result<(), Error> {
        batch.check_keys()?;
        batch.rows.sort_by(|a, b| key(a).cmp(&key(b)));
        let (sql, arguments) =
            statement(queries, &mut batch).map_err(|source| Error::Database {
                doing: "binding the events of a commit",
                source: sqlx::Error::Encode(source),
            })?;
        let result = sqlx::query_with(AssertSqlSafe(sql), arguments)
            .fetch_optional(connection)
            .await;
        match result {
            Ok(Some(counts)) if !batch.rows.is_empty() => {
                let written: i64 = counts
                    .try_get(0)
                    .map_err(Error::database("reading the result of a commit"))?;
                check_rows(&batch.rows, written)
            }
            Ok(_) => Ok(()),
            Err(error) => Err(explain(error, queries, &batch)),
        }
    }
}

/// The statement that writes all of the batch.
fn statement(
    queries: &Queries,
    batch: &mut WriteBatch<Postgres>,
) -> Result<(String, PgArguments), sqlx::error::BoxDynError> {
    let mut arguments = batch.arguments.pop().unwrap_or_default();
    let rows = batch.rows.len();
    let mut parts: Vec<String> = Vec::new();
    for (n, row) in batch.rows.iter().enumerate() {
        let mut part = format!("w{n} AS (");
        write_row(&mut part, row, n);
        part.push_str(" RETURNING 1)");
        parts.push(part);
    }
    let mut inserts = Vec::new();
    if !batch.events.is_empty() {
        let events: Vec<_> = batch.events.iter().collect();
        inserts.push(insert_events(
            queries,
            &mut arguments,
            &events,
            &batch.shared,
        )?);
    }
    if !batch.scheduled.is_empty() {
        inserts.push(insert_scheduled(queries, &mut arguments, batch)?);
    }
    for insert in &mut inserts {
        let only = after("WHERE", rows);
        let _ = write!(insert, "{only}\nORDER BY e.place");
    }
    // Without rows, the last insert is the main query.
    let main = match rows {
        0 => inserts.pop().unwrap_or_default(),
        _ => check(rows),
    };
    for (n, insert) in inserts.iter().enumerate() {
        parts.push(format!("events{n} AS ({insert})"));
    }
    let sql = match parts.as_slice() {
        [] => main,
        parts => format!("WITH {}\n{main}", parts.join(",\n")),
    };
    Ok((sql, arguments))
}

fn key(row: &RowWrite) -> (Option<&str>, &str, &str) {
    (row.table.schema(), row.table.table(), &row.aggregate_id)
}

/// Appends the statement of one row, without its RETURNING.
fn write_row(sql: &mut String, row: &RowWrite, n: usize) {
    let table = row.table.quoted_table();
    let id = quote(row.table.id());
    let version = quote(row.table.version());
    let mut place = row.first_argument;
    let mut next = || {
        place += 1;
        format!("${place}")
    };
    match row.change {
        Change::Insert => {
            let mut columns = vec![id.clone()];
            columns.extend(row.table.others().iter().map(|column| quote(column)));
            columns.push(version);
            let places: Vec<_> = columns.iter().map(|_| next()).collect();
            let _ = write!(
                sql,
                "INSERT INTO {table} ({}) SELECT {}{} ON CONFLICT ({id}) DO NOTHING",
                columns.join(", "),
                places.join(", "),
                after(" WHERE", n),
            );
        }
        Change::Update => {
            let mut sets = String::new();
            for column in row.table.others() {
                let _ = write!(sets, "{} = {}, ", quote(column), next());
            }
            let _ = write!(
                sql,
                "UPDATE {table} SET {sets}{version} = {} WHERE {id} = {} AND {version} = {}{}",
                next(),
                next(),
                next(),
                after(" AND", n),
            );
        }
        Change::Delete => {
            let _ = write!(
                sql,
                "DELETE FROM {table} WHERE {id} = {} AND {version} = {}{}",
                next(),
                next(),
                after(" AND", n),
            );
        }
    }
}

/// The condition that the row before was written.
fn after(word: &str, n: usize) -> String {
    match n.checked_sub(1) {
        Some(before) => format!("{word} (SELECT count(*) FROM w{before}) = 1"),
        None => String::new(),
    }
}

/// The main query behind rows: how many were written, or an error if a later one was not.
fn check(rows: usize) -> String {
    if rows == 1 {
        return "SELECT count(*) FROM w0".to_owned();
    }
    let counts: Vec<_> = (0..rows)
        .map(|n| format!("(SELECT count(*) FROM w{n})"))
        .collect();
    let sum = counts.join(" + ");
    // The cast fails on purpose; it can't be folded while planning, as it needs the counts.
    format!(
        "SELECT CASE WHEN {sum} = {rows} THEN {rows}::bigint \
         ELSE CAST('{CONFLICT}' || ({sum})::text AS bigint) END"
    )
}

/// The insert of events into the log, up to its condition.
fn insert_events(
    queries: &Queries,
    arguments: &mut PgArguments,
    events: &[&EventRow],
    shared: &SharedColumns,
) -> Result<String, sqlx::error::BoxDynError> {
    let sql = if events.iter().any(|event| event.business_key.is_some()) {
        &queries.insert_keyed_events
    } else {
        &queries.insert_events
    };
    let insert = shift_places(sql, arguments.len());
    bind_events(arguments, events, shared)?;
    Ok(insert)
}

/// The insert of scheduled events, up to its condition.
fn insert_scheduled(
    queries: &Queries,
    arguments: &mut PgArguments,
    batch: &WriteBatch<Postgres>,
) -> Result<String, sqlx::error::BoxDynError> {
    let insert = shift_places(&queries.insert_scheduled, arguments.len());
    let events: Vec<_> = batch.scheduled.iter().map(|row| &row.event).collect();
    bind_events(arguments, &events, &batch.shared)?;
    let at = |row: &ScheduledRow| match row.due {
        Due::At(time) => Some(time),
        Due::After(_) => None,
    };
    let after = |row: &ScheduledRow| match row.due {
        Due::At(_) => None,
        Due::After(wait) => Some(wait.as_secs_f64()),
    };
    arguments.add(batch.scheduled.iter().map(at).collect::<Vec<_>>())?;
    arguments.add(batch.scheduled.iter().map(after).collect::<Vec<_>>())?;
    Ok(insert)
}

/// Adds `offset` to each `$n`, as the events' arguments stand behind the rows'.
fn shift_places(sql: &str, offset: usize) -> String {
    let mut shifted = String::with_capacity(sql.len() + 32);
    let mut parts = sql.split('$');
    shifted.push_str(parts.next().unwrap_or_default());
    for part in parts {
        let digits = part
            .find(|c: char| !c.is_ascii_digit())
            .unwrap_or(part.len());
        let (number, rest) = part.split_at(digits);
        let number: usize = number.parse().unwrap_or_default();
        let _ = write!(shifted, "${}{rest}", number + offset);
    }
    shifted
}

fn bind_events(
    arguments: &mut PgArguments,
    events: &[&EventRow],
    shared: &SharedColumns,
) -> Result<(), sqlx::error::BoxDynError> {
    fn all<'e, T>(events: &[&'e EventRow], column: impl Fn(&'e EventRow) -> T) -> Vec<T> {
        events.iter().map(|event| column(event)).collect()
    }
    arguments.add(all(events, |e| e.shard))?;
    arguments.add(all::<Uuid>(events, |e| e.message_id.as_uuid()))?;
    arguments.add(all(events, |e| e.event_type))?;
    // A version is written by hand and small; beyond i32 PostgreSQL's check would refuse it too.
    arguments.add(all(events, |e| {
        i32::try_from(e.schema_version).unwrap_or(i32::MAX)
    }))?;
    arguments.add(all(events, |e| e.aggregate.as_ref().map(|a| a.0)))?;
    arguments.add(all(events, |e| e.aggregate.as_ref().map(|a| a.1.as_str())))?;
    arguments.add(all(events, |e| e.aggregate.as_ref().map(|a| a.2)))?;
    arguments.add(all(events, |e| e.business_key.as_deref()))?;
    arguments.add(all(events, |e| e.payload.as_str()))?;
    arguments.add(shared.correlation_id.as_str())?;
    arguments.add(shared.causation_id.as_deref())?;
    arguments.add(shared.producer.as_str())?;
    arguments.add(shared.traceparent.as_deref())?;
    arguments.add(shared.tracestate.as_deref())?;
    arguments.add(shared.headers_json())
}

/// The rows are written in order and stop at the first that does not match.
fn check_rows(rows: &[RowWrite], written: i64) -> Result<(), Error> {
    let written = usize::try_from(written).unwrap_or_default();
    match rows.get(written) {
        Some(row) => Err(row.refused()),
        None => Ok(()),
    }
}

fn explain(error: sqlx::Error, queries: &Queries, batch: &WriteBatch<Postgres>) -> Error {
    if let Some(database) = error.as_database_error() {
        if let Some((_, rest)) = database.message().split_once(CONFLICT) {
            let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
            if let Some(row) = digits.parse().ok().and_then(|n: usize| batch.rows.get(n)) {
                return row.refused();
            }
        }
        if database.message().contains(DUPLICATE) {
            return batch.duplicate_event(key_taken());
        }
        let taken = [
            "outbox_message_business_key",
            "outbox_scheduled_business_key",
        ]
        .map(|index| format!("{}{index}", queries.names.prefix()));
        if database
            .constraint()
            .is_some_and(|name| taken.iter().any(|index| index == name))
        {
            return batch.duplicate_event(error);
        }
    }
    Error::Database {
        doing: "writing a commit's aggregates and events",
        source: error,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_shifted() {
        assert_eq!(shift_places("a $1, $12::json", 3), "a $4, $15::json");
        assert_eq!(shift_places("none", 3), "none");
    }
}
