use std::future;
use std::sync::Arc;
use std::time::Duration;

use sqlx::sqlite::{Sqlite, SqliteConnection, SqliteRow};
use sqlx::{AssertSqlSafe, Pool, Row};
use time::OffsetDateTime;
use uuid::Uuid;

use super::reading::read_on;
use crate::store::stored_message::{ReadMessage, StoredMessage};
use crate::store::{
    JournalEntry, LogContent, LogRead, LogRequest, LogRow, Names, RelayStore, Renewal, ShardLease,
    ShardSet, Wake, Writers,
};

/// The relay's SQL of one outbox on SQLite.
#[derive(Debug)]
pub struct RelayQueries {
    read: Arc<str>,
    pub(super) read_on: Arc<str>,
    pub(super) read_together: Arc<str>,
    heartbeat: Arc<str>,
    bury: Arc<str>,
    count: Arc<str>,
    renew: Arc<str>,
    claim: Arc<str>,
    vacant: Arc<str>,
    advance: Arc<str>,
    journal: Arc<str>,
    release: Arc<str>,
    leave: Arc<str>,
}

impl RelayStore for Sqlite {
    /// There is one writer at a time, and `AUTOINCREMENT` counts on from the last commit.
    const COMMITS_IN_ID_ORDER: bool = true;

    const NOTIFIES: bool = false;

    type RelayQueries = RelayQueries;

    fn relay_queries(names: &Names) -> RelayQueries {
        let render = |sql: &str| Arc::from(names.render(sql));
        RelayQueries {
            read: render(include_str!("sql/relay_read.sql")),
            read_on: render(include_str!("sql/relay_read_on.sql")),
            read_together: render(include_str!("sql/relay_read_together.sql")),
            heartbeat: render(include_str!("sql/relay_heartbeat.sql")),
            bury: render(include_str!("sql/relay_bury.sql")),
            count: render(include_str!("sql/relay_count.sql")),
            renew: render(include_str!("sql/relay_renew.sql")),
            claim: render(include_str!("sql/relay_claim.sql")),
            vacant: render(include_str!("sql/relay_vacant.sql")),
            advance: render(include_str!("sql/relay_advance.sql")),
            journal: render(include_str!("sql/relay_journal.sql")),
            release: render(include_str!("sql/relay_release.sql")),
            leave: render(include_str!("sql/relay_leave.sql")),
        }
    }

    async fn read_log(
        connection: &mut SqliteConnection,
        queries: &RelayQueries,
        request: &LogRequest<'_>,
    ) -> Result<LogRead, sqlx::Error> {
        if request.shards == ShardSet::ALL && !request.measured {
            return read_on(connection, queries, request).await;
        }
        let rows = sqlx::query(AssertSqlSafe(Arc::clone(&queries.read)))
            .bind(request.after)
            .bind(request.up_to)
            .bind(as_i64(request.limit))
            .bind(request.shards.bits())
            .bind(as_i64(request.bytes))
            .bind(request.first_is_free)
            .fetch_all(connection)
            .await?;
        let sizes = |row: &SqliteRow| Ok::<_, sqlx::Error>((row.try_get(17)?, row.try_get(18)?));
        let cut = request.cut(rows.len(), rows.last().map(sizes).transpose()?);
        Ok(LogRead {
            rows: rows
                .iter()
                .take(cut.rows)
                .map(read_row)
                .collect::<Result<_, _>>()?,
            is_cut: cut.is_cut,
            no_room_for: cut.no_room_for,
            snapshot: None,
            passed: None,
        })
    }

    async fn writers_in_flight(
        _connection: &mut SqliteConnection,
        _queries: &RelayQueries,
    ) -> Result<Writers, sqlx::Error> {
        Ok(Writers::default())
    }

    async fn renew(
        connection: &mut SqliteConnection,
        queries: &RelayQueries,
        instance: Uuid,
        lease: Duration,
    ) -> Result<Renewal, sqlx::Error> {
        sqlx::query(AssertSqlSafe(Arc::clone(&queries.heartbeat)))
            .bind(instance)
            .bind(as_millis(lease))
            .execute(&mut *connection)
            .await?;
        sqlx::query(AssertSqlSafe(Arc::clone(&queries.bury)))
            .execute(&mut *connection)
            .await?;
        let instances: i64 = sqlx::query_scalar(AssertSqlSafe(Arc::clone(&queries.count)))
            .bind(instance)
            .fetch_one(&mut *connection)
            .await?;
        let rows = sqlx::query(AssertSqlSafe(Arc::clone(&queries.renew)))
            .bind(instance)
            .bind(as_millis(lease))
            .fetch_all(connection)
            .await?;
        Ok(Renewal {
            instances: usize::try_from(instances).unwrap_or(1),
            owned: read_leases(&rows)?,
        })
    }

    async fn any_vacant(
        connection: &mut SqliteConnection,
        queries: &RelayQueries,
    ) -> Result<bool, sqlx::Error> {
        sqlx::query_scalar(AssertSqlSafe(Arc::clone(&queries.vacant)))
            .fetch_one(connection)
            .await
    }

    async fn claim_shards(
        connection: &mut SqliteConnection,
        queries: &RelayQueries,
        instance: Uuid,
        lease: Duration,
        most: usize,
    ) -> Result<Vec<ShardLease>, sqlx::Error> {
        let rows = sqlx::query(AssertSqlSafe(Arc::clone(&queries.claim)))
            .bind(instance)
            .bind(as_millis(lease))
            .bind(as_i64(most))
            .fetch_all(connection)
            .await?;
        read_leases(&rows)
    }

    async fn advance(
        connection: &mut SqliteConnection,
        queries: &RelayQueries,
        instance: Uuid,
        shards: &[ShardLease],
        journal: Option<JournalEntry>,
    ) -> Result<ShardSet, sqlx::Error> {
        if let Some(entry) = journal {
            sqlx::query(AssertSqlSafe(Arc::clone(&queries.journal)))
                .bind(instance)
                .bind(entry.from)
                .bind(entry.to)
                .bind(as_i64(entry.messages))
                .execute(&mut *connection)
                .await?;
        }
        let moved: Vec<i16> = sqlx::query_scalar(AssertSqlSafe(Arc::clone(&queries.advance)))
            .bind(instance)
            .bind(as_json(shards))
            .fetch_all(connection)
            .await?;
        Ok(moved.into_iter().collect())
    }

    async fn release(
        connection: &mut SqliteConnection,
        queries: &RelayQueries,
        instance: Uuid,
        shards: &[ShardLease],
    ) -> Result<(), sqlx::Error> {
        sqlx::query(AssertSqlSafe(Arc::clone(&queries.release)))
            .bind(instance)
            .bind(as_json(shards))
            .execute(connection)
            .await
            .map(drop)
    }

    async fn leave(
        connection: &mut SqliteConnection,
        queries: &RelayQueries,
        instance: Uuid,
    ) -> Result<(), sqlx::Error> {
        sqlx::query(AssertSqlSafe(Arc::clone(&queries.leave)))
            .bind(instance)
            .execute(connection)
            .await
            .map(drop)
    }

    async fn notify(_pool: &Pool<Self>, _names: &Names) -> Result<(), sqlx::Error> {
        Ok(())
    }

    /// SQLite has nothing to listen to: other processes' rows are found by polling.
    async fn listen(_pool: &Pool<Self>, _names: &Names, _wake: &Wake) -> sqlx::Error {
        future::pending().await
    }
}

fn read_row(row: &SqliteRow) -> Result<LogRow, sqlx::Error> {
    let id = row.try_get(0)?;
    let shard: Option<i16> = row.try_get(1)?;
    let wanted: i64 = row.try_get(2)?;
    if let (Some(shard), 0) = (shard, wanted) {
        return Ok(LogRow {
            id,
            shard,
            content: LogContent::NotRead,
        });
    }
    let read = read_message(row, 3);
    Ok(LogRow {
        id,
        shard: shard.or(read.shard).unwrap_or_default(),
        content: read.content,
    })
}

/// Reads an envelope whose first column has that index. A column's type is a suggestion to SQLite:
/// a foreign writer can store anything, and such a row is unreadable.
pub(super) fn read_message(row: &SqliteRow, first: usize) -> ReadMessage {
    let text = |offset: usize| row.try_get(first + offset).ok().flatten();
    match read_columns(row, first) {
        Ok(stored) => stored.into(),
        Err(error) => ReadMessage::unreadable(&error, text(1), text(3).zip(text(4))),
    }
}

fn read_columns(row: &SqliteRow, first: usize) -> Result<StoredMessage, sqlx::Error> {
    let millis: i64 = row.try_get(first + 9)?;
    Ok(StoredMessage {
        message_id: row.try_get(first)?,
        event_type: row.try_get(first + 1)?,
        schema_version: row.try_get(first + 2)?,
        aggregate_type: row.try_get(first + 3)?,
        aggregate_id: row.try_get(first + 4)?,
        sequence: row.try_get(first + 5)?,
        correlation_id: row.try_get(first + 6)?,
        causation_id: row.try_get(first + 7)?,
        producer: row.try_get(first + 8)?,
        occurred_at: OffsetDateTime::from_unix_timestamp_nanos(i128::from(millis) * 1_000_000)
            .map_err(|error| sqlx::Error::Decode(error.into()))?,
        traceparent: row.try_get(first + 10)?,
        tracestate: row.try_get(first + 11)?,
        headers: row.try_get(first + 12)?,
        payload: row.try_get(first + 13)?,
    })
}

fn read_leases(rows: &[SqliteRow]) -> Result<Vec<ShardLease>, sqlx::Error> {
    let lease = |row: &SqliteRow| {
        Ok(ShardLease {
            shard: row.try_get(0)?,
            epoch: row.try_get(1)?,
            position: row.try_get(2)?,
        })
    };
    rows.iter().map(lease).collect()
}

fn as_json(shards: &[ShardLease]) -> String {
    let rows: Vec<String> = shards
        .iter()
        .map(|lease| format!("[{},{},{}]", lease.shard, lease.epoch, lease.position))
        .collect();
    format!("[{}]", rows.join(","))
}

pub(super) fn as_millis(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}

pub(super) fn as_i64(number: usize) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
