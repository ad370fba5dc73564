use std::fmt::Write as _;
use std::sync::Arc;

use sqlx::sqlite::{Sqlite, SqliteArguments, SqliteConnection};
use sqlx::types::Json;
use sqlx::{Arguments, AssertSqlSafe};

use super::Queries;
use crate::store::{
    Change, Due, Error, EventRow, RowWrite, ScheduledRow, SharedColumns, WriteBatch, WriteStore,
    key_taken, quote,
};

/// Columns of an event.
const EVENT_COLUMNS: usize = 15;
/// Events of one insert: SQLite takes up to 32,766 arguments.
const EVENTS_PER_INSERT: usize = 2_000;

impl WriteStore for Sqlite {
    const ONE_STATEMENT: bool = false;

    /// A statement a row and one for up to 2,000 events: a round trip inside the process costs
    /// next to nothing, and the caller's transaction makes them atomic.
    async fn write(
        connection: &mut SqliteConnection,
        queries: &Queries,
        mut batch: WriteBatch<Self>,
    ) -> Result<(), Error> {
        let arguments = std::mem::take(&mut batch.arguments);
        for (row, arguments) in batch.rows.iter().zip(arguments) {
            let written = sqlx::query_with(AssertSqlSafe(row_sql(row)), arguments)
                .execute(&mut *connection)
                .await
                .map_err(Error::database("writing a commit's aggregates"))?;
            if written.rows_affected() == 0 {
                return Err(row.refused());
            }
        }
        batch.check_keys()?;
        check_free(
            connection,
            &queries.keys_scheduled,
            &batch,
            batch.events.iter(),
        )
        .await?;
        let later = batch.scheduled.iter().map(|row| &row.event);
        check_free(connection, &queries.keys_stored, &batch, later).await?;
        let events = batch.events.chunks(EVENTS_PER_INSERT);
        let scheduled = batch.scheduled.chunks(EVENTS_PER_INSERT);
        let inserts = events
            .map(|events| insert(queries, events, &batch.shared))
            .chain(scheduled.map(|rows| insert_scheduled(queries, rows, &batch.shared)));
        for insert in inserts {
            let (sql, arguments) = insert.map_err(|source| Error::Database {
                doing: "binding the events of a commit",
                source: sqlx::Error::Encode(source),
            })?;
            let result = sqlx::query_with(AssertSqlSafe(sql), arguments)
                .execute(&mut *connection)
                .await;
            if let Err(error) = result {
                return Err(explain(error, &batch));
            }
        }
        Ok(())
    }
}

/// Refuses business keys that are in the other table. No other writer can come in between.
async fn check_free<'e>(
    connection: &mut SqliteConnection,
    count_sql: &Arc<str>,
    batch: &WriteBatch<Sqlite>,
    events: impl Iterator<Item = &'e EventRow>,
) -> Result<(), Error> {
    let keys: Vec<_> = events.filter_map(EventRow::key).collect();
    if keys.is_empty() {
        return Ok(());
    }
    let taken: i64 = sqlx::query_scalar(AssertSqlSafe(Arc::clone(count_sql)))
        .bind(Json(keys))
        .fetch_one(connection)
        .await
        .map_err(Error::database("looking for business keys"))?;
    match taken {
        0 => Ok(()),
        _ => Err(batch.duplicate_event(key_taken())),
    }
}

fn row_sql(row: &RowWrite) -> String {
    let table = row.table.quoted_table();
    let id = quote(row.table.id());
    let version = quote(row.table.version());
    match row.change {
        Change::Insert => {
            let mut columns = vec![id.clone()];
            columns.extend(row.table.others().iter().map(|column| quote(column)));
            columns.push(version);
            format!(
                "INSERT INTO {table} ({}) VALUES ({}) ON CONFLICT ({id}) DO NOTHING",
                columns.join(", "),
                vec!["?"; columns.len()].join(", "),
            )
        }
        Change::Update => {
            let mut sets = String::new();
            for column in row.table.others() {
                let _ = write!(sets, "{} = ?, ", quote(column));
            }
            format!("UPDATE {table} SET {sets}{version} = ? WHERE {id} = ? AND {version} = ?")
        }
        Change::Delete => format!("DELETE FROM {table} WHERE {id} = ? AND {version} = ?"),
    }
}

fn insert(
    queries: &Queries,
    events: &[EventRow],
    shared: &SharedColumns,
) -> Result<(String, SqliteArguments), sqlx::error::BoxDynError> {
    let places = format!("({})", vec!["?"; EVENT_COLUMNS].join(", "));
    let sql = format!(
        "{}{}",
        queries.insert_events,
        vec![places; events.len()].join(", ")
    );
    let mut arguments = SqliteArguments::default();
    let headers = shared.headers_json();
    for event in events {
        bind_event(&mut arguments, event, shared, headers.as_deref())?;
    }
    Ok((sql, arguments))
}

fn insert_scheduled(
    queries: &Queries,
    rows: &[ScheduledRow],
    shared: &SharedColumns,
) -> Result<(String, SqliteArguments), sqlx::error::BoxDynError> {
    let place = |row: &ScheduledRow| {
        let due = match row.due {
            Due::At(_) => "?",
            Due::After(_) => "CAST(unixepoch('subsec') * 1000 AS INTEGER) + ?",
        };
        format!("({due}, {})", vec!["?"; EVENT_COLUMNS].join(", "))
    };
    let places: Vec<_> = rows.iter().map(place).collect();
    let sql = format!("{}{}", queries.insert_scheduled, places.join(", "));
    let mut arguments = SqliteArguments::default();
    let headers = shared.headers_json();
    for row in rows {
        let millis = match row.due {
            Due::At(time) => i64::try_from(time.unix_timestamp_nanos() / 1_000_000),
            Due::After(wait) => i64::try_from(wait.as_millis()),
        };
        arguments.add(millis.unwrap_or(i64::MAX / 2))?;
        bind_event(&mut arguments, &row.event, shared, headers.as_deref())?;
    }
    Ok((sql, arguments))
}

fn bind_event(
    arguments: &mut SqliteArguments,
    event: &EventRow,
    shared: &SharedColumns,
    headers: Option<&str>,
) -> Result<(), sqlx::error::BoxDynError> {
    let aggregate = event.aggregate.as_ref();
    arguments.add(event.shard)?;
    arguments.add(event.message_id.as_uuid())?;
    arguments.add(event.event_type)?;
    arguments.add(event.schema_version)?;
    arguments.add(aggregate.map(|a| a.0))?;
    arguments.add(aggregate.map(|a| a.1.as_str()))?;
    arguments.add(aggregate.map(|a| a.2))?;
    arguments.add(event.business_key.as_deref())?;
    arguments.add(event.payload.as_str())?;
    arguments.add(shared.correlation_id.as_str())?;
    arguments.add(shared.causation_id.as_deref())?;
    arguments.add(shared.producer.as_str())?;
    arguments.add(shared.traceparent.as_deref())?;
    arguments.add(shared.tracestate.as_deref())?;
    arguments.add(headers)?;
    Ok(())
}

fn explain(error: sqlx::Error, batch: &WriteBatch<Sqlite>) -> Error {
    // SQLite names the columns, not the index: `UNIQUE constraint failed: t.event_type, t.business_key`.
    let taken = error.as_database_error().is_some_and(|database| {
        database.is_unique_violation() && database.message().ends_with(".business_key")
    });
    if taken {
        return batch.duplicate_event(error);
    }
    Error::Database {
        doing: "writing a commit's events",
        source: error,
    }
}
