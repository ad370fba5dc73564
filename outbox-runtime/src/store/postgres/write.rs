use std::fmt::Write as _;

use sqlx::postgres::{PgArguments, PgConnection, Postgres};
use sqlx::{Arguments, AssertSqlSafe, Row};
use uuid::Uuid;

use super::Queries;
use crate::store::{
    Change, Error, EventRow, RowWrite, SharedColumns, WriteBatch, WriteStore, quote,
};

/// Begins the text that a failed check puts into the error, so that it is told from any other.
const CONFLICT: &str = "outbox-conflict:";

impl WriteStore for Postgres {
    const ONE_STATEMENT: bool = true;

    /// A longer chain costs more than the round trip that it saves: it is planned in quadratic
    /// time, and a very long one exceeds the server's stack.
    const MOST_ROWS: usize = 100;

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
        let mut arguments = batch.arguments.pop().unwrap_or_default();
        batch.rows.sort_by(|a, b| key(a).cmp(&key(b)));
        let mut sql = String::new();
        for (n, row) in batch.rows.iter().enumerate() {
            sql.push_str(if n == 0 { "WITH " } else { ",\n" });
            let _ = write!(sql, "w{n} AS (");
            write_row(&mut sql, row, n);
            sql.push_str(" RETURNING 1)");
        }
        let rows = batch.rows.len();
        if !batch.events.is_empty() {
            let insert = shift_places(&queries.insert_events, arguments.len());
            bind_events(&mut arguments, &batch.events, &batch.shared).map_err(|source| {
                Error::Database {
                    doing: "binding the events of a commit",
                    source: sqlx::Error::Encode(source),
                }
            })?;
            if rows > 0 {
                let _ = write!(
                    sql,
                    ",\nevents AS ({insert}WHERE (SELECT count(*) FROM w{}) = 1\nORDER BY e.place)",
                    rows - 1
                );
            } else {
                let _ = write!(sql, "{insert}ORDER BY e.place");
            }
        }
        write_check(&mut sql, rows);
        let result = sqlx::query_with(AssertSqlSafe(sql), arguments)
            .fetch_optional(connection)
            .await;
        match result {
            Ok(Some(counts)) if rows > 0 => {
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

/// Appends the main query: how many rows were written, or an error if a later one was not.
fn write_check(sql: &mut String, rows: usize) {
    let Some(last) = rows.checked_sub(1) else {
        return;
    };
    if last == 0 {
        sql.push_str("\nSELECT count(*) FROM w0");
        return;
    }
    let counts: Vec<_> = (0..rows)
        .map(|n| format!("(SELECT count(*) FROM w{n})"))
        .collect();
    let sum = counts.join(" + ");
    // The cast fails on purpose; it can't be folded while planning, as it needs the counts.
    let _ = write!(
        sql,
        "\nSELECT CASE WHEN {sum} = {rows} THEN {rows}::bigint \
         ELSE CAST('{CONFLICT}' || ({sum})::text AS bigint) END",
    );
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
    events: &[EventRow],
    shared: &SharedColumns,
) -> Result<(), sqlx::error::BoxDynError> {
    fn all<'e, T>(events: &'e [EventRow], column: impl Fn(&'e EventRow) -> T) -> Vec<T> {
        events.iter().map(column).collect()
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
        let constraint = format!("{}outbox_message_business_key", queries.names.prefix());
        if database.constraint() == Some(&constraint) {
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
