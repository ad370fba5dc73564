use std::sync::Arc;

use futures_util::TryStreamExt;
use serde::Deserialize;
use sqlx::sqlite::{SqliteConnection, SqliteRow};
use sqlx::{AssertSqlSafe, Row};
use time::OffsetDateTime;
use uuid::Uuid;

use super::relay::{RelayQueries, as_i64, read_message};
use crate::store::stored_message::{ReadMessage, StoredMessage};
use crate::store::{Arriving, LogRead, LogRequest, LogRow};

/// Rows with more bytes than this come one by one: together they are in memory several times for a
/// moment.
const MOST_TOGETHER: usize = 4 << 20;

/// Reads all rows above the cursor.
///
/// sqlx hands rows over from a thread of its own one by one, and most of the time goes into waking
/// the one who waits for the next. So they come as one value if they are what we write. Where there
/// is anything else among them, or too much, they are read again one by one.
pub(super) async fn read_on(
    connection: &mut SqliteConnection,
    queries: &RelayQueries,
    request: &LogRequest<'_>,
) -> Result<LogRead, sqlx::Error> {
    match read_together(connection, queries, request).await {
        Some(read) => Ok(read),
        None => read_one_by_one(connection, queries, request).await,
    }
}

/// Whatever fails here fails with its reason, or becomes an unreadable row, when rows come one by
/// one.
async fn read_together(
    connection: &mut SqliteConnection,
    queries: &RelayQueries,
    request: &LogRequest<'_>,
) -> Option<LogRead> {
    let found = sqlx::query(AssertSqlSafe(Arc::clone(&queries.read_together)))
        .bind(request.after)
        .bind(request.up_to)
        .bind(as_i64(request.limit))
        .bind(as_i64(request.bytes.min(MOST_TOGETHER)))
        .fetch_one(connection)
        .await
        .ok()?;
    let any: bool = found.try_get(0).ok()?;
    let rows: Vec<Together> = serde_json::from_str(found.try_get(1).ok()?).ok()?;
    if rows.is_empty() && any {
        return None;
    }
    let looked_at = rows.len();
    let mut arriving = Arriving::new(request);
    for row in rows {
        arriving.take(row.read()?).ok()?;
    }
    Some(arriving.read(looked_at, None))
}

async fn read_one_by_one(
    connection: &mut SqliteConnection,
    queries: &RelayQueries,
    request: &LogRequest<'_>,
) -> Result<LogRead, sqlx::Error> {
    let mut rows = sqlx::query(AssertSqlSafe(Arc::clone(&queries.read_on)))
        .bind(request.after)
        .bind(request.up_to)
        .bind(as_i64(request.limit))
        .fetch(connection);
    let mut arriving = Arriving::new(request);
    let mut looked_at = 0;
    while !arriving.is_full()
        && let Some(row) = rows.try_next().await?
    {
        looked_at += 1;
        arriving.take(read_alone(&row)?)?;
    }
    Ok(arriving.read(looked_at, None))
}

fn read_alone(row: &SqliteRow) -> Result<LogRow, sqlx::Error> {
    let shard: Option<i16> = row.try_get(1)?;
    Ok(log_row(row.try_get(0)?, shard, read_message(row, 2)))
}

fn log_row(id: i64, shard: Option<i16>, read: ReadMessage) -> LogRow {
    LogRow {
        id,
        shard: shard.or(read.shard).unwrap_or_default(),
        content: read.content,
    }
}

/// A row in the array of a read, its columns in the order of `relay_read_together.sql`.
#[derive(Deserialize)]
struct Together {
    id: i64,
    shard: Option<i16>,
    message_id: String,
    event_type: String,
    schema_version: i32,
    aggregate_type: Option<String>,
    aggregate_id: Option<String>,
    sequence: Option<i64>,
    correlation_id: Option<String>,
    causation_id: Option<String>,
    producer: Option<String>,
    occurred_at: i64,
    traceparent: Option<String>,
    tracestate: Option<String>,
    headers: Option<String>,
    payload: String,
}

impl Together {
    fn read(self) -> Option<LogRow> {
        let nanos = i128::from(self.occurred_at) * 1_000_000;
        let stored = StoredMessage {
            message_id: Uuid::try_parse(&self.message_id).ok()?,
            event_type: self.event_type,
            schema_version: self.schema_version,
            aggregate_type: self.aggregate_type,
            aggregate_id: self.aggregate_id,
            sequence: self.sequence,
            correlation_id: self.correlation_id,
            causation_id: self.causation_id,
            producer: self.producer,
            occurred_at: OffsetDateTime::from_unix_timestamp_nanos(nanos).ok()?,
            traceparent: self.traceparent,
            tracestate: self.tracestate,
            headers: self.headers,
            payload: self.payload,
        };
        Some(log_row(self.id, self.shard, stored.into()))
    }
}

#[cfg(test)]
mod tests;
