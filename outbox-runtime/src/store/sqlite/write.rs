use std::fmt::Write as _;

use sqlx::sqlite::{Sqlite, SqliteArguments, SqliteConnection};
use sqlx::{Arguments, AssertSqlSafe};

use super::Queries;
use crate::store::{
    Backend, Change, Error, EventRow, RowWrite, SharedColumns, WriteBatch, WriteStore, quote,
};

/// Columns of an event.
const EVENT_COLUMNS: usize = 15;
/// Events of one insert: SQLite takes up to 32,766 arguments.
const EVENTS_PER_INSERT: usize = 2_000;

impl WriteStore for Sqlite {
    const ONE_STATEMENT: bool = false;

    const MOST_ROWS: usize = usize::MAX;

    /// A statement a row and one for up to 2,000 events: a round trip inside the process costs
    /// next to nothing, and the caller's transaction makes them atomic.
    async fn write(
        connection: &mut SqliteConnection,
        queries: &Queries,
        mut batch: WriteBatch<Self>,
    ) -> Result<(), Error> {
        Self::check_transaction(&mut *connection)
            .await
            .map_err(Error::database(
                "writing in a transaction in which a statement failed",
            ))?;
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
        for events in batch.events.chunks(EVENTS_PER_INSERT) {
            let (sql, arguments) =
                insert(queries, events, &batch.shared).map_err(|source| Error::Database {
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
        arguments.add(headers.as_deref())?;
    }
    Ok((sql, arguments))
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
