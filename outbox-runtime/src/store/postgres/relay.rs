use std::sync::Arc;
use std::time::Duration;

use futures_util::TryStreamExt;
use sqlx::postgres::{PgConnection, PgListener, PgPoolOptions, PgRow, Postgres};
use sqlx::{AssertSqlSafe, Pool, Row};
use uuid::Uuid;

use crate::store::stored_message::{ReadMessage, StoredMessage};
use crate::store::{
    Arriving, JournalEntry, LogContent, LogRead, LogRequest, LogRow, Names, Passed, RelayStore,
    Renewal, ShardLease, ShardSet, Snapshot, Wake, Writers,
};

/// The relay's SQL of one outbox on PostgreSQL.
#[derive(Debug)]
pub struct RelayQueries {
    /// The log's table, as `regclass` takes it.
    log: String,
    read: Arc<str>,
    read_on: Arc<str>,
    read_shards: Arc<str>,
    writers: Arc<str>,
    heartbeat: Arc<str>,
    renew: Arc<str>,
    claim: Arc<str>,
    vacant: Arc<str>,
    advance: Arc<str>,
    release: Arc<str>,
    leave: Arc<str>,
}

const LOG: &str = "outbox_message";

const OUT_OF_RANGE: &str = "occurred_at lies outside of the years 1 to 9999";

/// The table's own number names the channel: two outboxes of one database never share it.
const CHANNEL: &str = "SELECT 'outbox_' || $1::text::regclass::oid::text";
const NOTIFY: &str = "SELECT pg_notify('outbox_' || $1::text::regclass::oid::text, '')";

impl RelayStore for Postgres {
    const COMMITS_IN_ID_ORDER: bool = false;

    const NOTIFIES: bool = true;

    type RelayQueries = RelayQueries;

    fn relay_queries(names: &Names) -> RelayQueries {
        let render = |sql: &str| Arc::from(names.render(sql));
        RelayQueries {
            log: names.qualified(LOG),
            read: render(include_str!("sql/relay_read.sql")),
            read_on: render(include_str!("sql/relay_read_on.sql")),
            read_shards: render(include_str!("sql/relay_read_shards.sql")),
            writers: render(include_str!("sql/relay_writers.sql")),
            heartbeat: render(include_str!("sql/relay_heartbeat.sql")),
            renew: render(include_str!("sql/relay_renew.sql")),
            claim: render(include_str!("sql/relay_claim.sql")),
            vacant: render(include_str!("sql/relay_vacant.sql")),
            advance: render(include_str!("sql/relay_advance.sql")),
            release: render(include_str!("sql/relay_release.sql")),
            leave: render(include_str!("sql/relay_leave.sql")),
        }
    }

    async fn read_log(
        connection: &mut PgConnection,
        queries: &RelayQueries,
        request: &LogRequest<'_>,
    ) -> Result<LogRead, sqlx::Error> {
        if request.gaps.is_empty() && !request.measured && !request.with_snapshot {
            return match request.shards == ShardSet::ALL {
                true => read_on(connection, queries, request).await,
                false => read_shards(connection, queries, request).await,
            };
        }
        let (first, last): (Vec<i64>, Vec<i64>) = request.gaps.iter().copied().unzip();
        let rows = sqlx::query(AssertSqlSafe(Arc::clone(&queries.read)))
            .bind(request.after)
            .bind(request.up_to)
            .bind(first)
            .bind(last)
            .bind(as_i64(request.limit))
            .bind(request.shards.bits())
            .bind(request.with_snapshot)
            .bind(as_i64(request.bytes))
            .bind(request.first_is_free)
            .fetch_all(connection)
            .await?;
        let snapshot: Option<String> = match rows.first() {
            Some(row) => row.try_get(17)?,
            None => None,
        };
        let sizes = |row: &PgRow| Ok::<_, sqlx::Error>((row.try_get(18)?, row.try_get(19)?));
        let cut = request.cut(rows.len(), rows.last().map(sizes).transpose()?);
        Ok(LogRead {
            rows: rows
                .iter()
                .take(cut.rows)
                .map(read_row)
                .collect::<Result<_, _>>()?,
            is_cut: cut.is_cut,
            no_room_for: cut.no_room_for,
            snapshot: snapshot.as_deref().and_then(Snapshot::parse),
            passed: None,
        })
    }

    async fn writers_in_flight(
        connection: &mut PgConnection,
        queries: &RelayQueries,
    ) -> Result<Writers, sqlx::Error> {
        let writers: Vec<(String, Vec<i64>)> =
            sqlx::query_as(AssertSqlSafe(Arc::clone(&queries.writers)))
                .bind(&queries.log)
                .fetch_all(connection)
                .await?;
        let numbers = |xids: Vec<i64>| xids.into_iter().filter_map(|xid| xid.try_into().ok());
        Ok(Writers {
            in_flight: writers
                .into_iter()
                .map(|(name, xids)| (name, numbers(xids).collect()))
                .collect(),
        })
    }

    async fn renew(
        connection: &mut PgConnection,
        queries: &RelayQueries,
        instance: Uuid,
        lease: Duration,
    ) -> Result<Renewal, sqlx::Error> {
        let others: i64 = sqlx::query_scalar(AssertSqlSafe(Arc::clone(&queries.heartbeat)))
            .bind(instance)
            .bind(lease.as_secs_f64())
            .fetch_one(&mut *connection)
            .await?;
        let rows = sqlx::query(AssertSqlSafe(Arc::clone(&queries.renew)))
            .bind(instance)
            .bind(lease.as_secs_f64())
            .fetch_all(connection)
            .await?;
        Ok(Renewal {
            instances: usize::try_from(others)
                .unwrap_or_default()
                .saturating_add(1),
            owned: read_leases(&rows)?,
        })
    }

    async fn any_vacant(
        connection: &mut PgConnection,
        queries: &RelayQueries,
    ) -> Result<bool, sqlx::Error> {
        sqlx::query_scalar(AssertSqlSafe(Arc::clone(&queries.vacant)))
            .fetch_one(connection)
            .await
    }

    async fn claim_shards(
        connection: &mut PgConnection,
        queries: &RelayQueries,
        instance: Uuid,
        lease: Duration,
        most: usize,
    ) -> Result<Vec<ShardLease>, sqlx::Error> {
        let rows = sqlx::query(AssertSqlSafe(Arc::clone(&queries.claim)))
            .bind(instance)
            .bind(lease.as_secs_f64())
            .bind(as_i64(most))
            .fetch_all(connection)
            .await?;
        read_leases(&rows)
    }

    async fn advance(
        connection: &mut PgConnection,
        queries: &RelayQueries,
        instance: Uuid,
        shards: &[ShardLease],
        journal: Option<JournalEntry>,
    ) -> Result<ShardSet, sqlx::Error> {
        let (numbers, epochs, positions) = columns(shards);
        let moved: Vec<i16> = sqlx::query_scalar(AssertSqlSafe(Arc::clone(&queries.advance)))
            .bind(instance)
            .bind(numbers)
            .bind(epochs)
            .bind(positions)
            .bind(journal.map(|entry| entry.from))
            .bind(journal.map(|entry| entry.to))
            .bind(journal.map(|entry| i32::try_from(entry.messages).unwrap_or(i32::MAX)))
            .fetch_all(connection)
            .await?;
        Ok(moved.into_iter().collect())
    }

    async fn release(
        connection: &mut PgConnection,
        queries: &RelayQueries,
        instance: Uuid,
        shards: &[ShardLease],
    ) -> Result<(), sqlx::Error> {
        let (numbers, epochs, positions) = columns(shards);
        sqlx::query(AssertSqlSafe(Arc::clone(&queries.release)))
            .bind(instance)
            .bind(numbers)
            .bind(epochs)
            .bind(positions)
            .execute(connection)
            .await
            .map(drop)
    }

    async fn leave(
        connection: &mut PgConnection,
        queries: &RelayQueries,
        instance: Uuid,
    ) -> Result<(), sqlx::Error> {
        sqlx::query(AssertSqlSafe(Arc::clone(&queries.leave)))
            .bind(instance)
            .execute(connection)
            .await
            .map(drop)
    }

    async fn notify(pool: &Pool<Self>, names: &Names) -> Result<(), sqlx::Error> {
        sqlx::query(NOTIFY)
            .bind(names.qualified(LOG))
            .execute(pool)
            .await
            .map(drop)
    }

    /// The connection is its own: one from the user's pool would be missing there for good.
    async fn listen(pool: &Pool<Self>, names: &Names, wake: &Wake) -> sqlx::Error {
        let own = PgPoolOptions::new()
            .max_connections(1)
            .idle_timeout(None)
            .max_lifetime(None)
            .connect_lazy_with((*pool.connect_options()).clone());
        let error = listen_on(&own, names, wake).await;
        own.close().await;
        error
    }
}

async fn listen_on(own: &Pool<Postgres>, names: &Names, wake: &Wake) -> sqlx::Error {
    let connected = async {
        let channel: String = sqlx::query_scalar(CHANNEL)
            .bind(names.qualified(LOG))
            .fetch_one(own)
            .await?;
        let mut listener = PgListener::connect_with(own).await?;
        listener.eager_reconnect(false);
        listener.listen(&channel).await?;
        Ok(listener)
    };
    let mut listener = match connected.await {
        Ok(listener) => listener,
        Err(error) => return error,
    };
    loop {
        wake.signal();
        match listener.try_recv().await {
            Ok(Some(_)) => {}
            // What was sent while the connection was down is lost: the caller connects anew, and
            // that signals first of all.
            Ok(None) => return sqlx::Error::WorkerCrashed,
            Err(error) => return error,
        }
    }
}

/// Reads all rows above the cursor.
async fn read_on(
    connection: &mut PgConnection,
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
    while let Some(row) = rows.try_next().await? {
        looked_at += 1;
        if !arriving.is_full() {
            arriving.take(read_wanted_row(&row)?)?;
        }
    }
    Ok(arriving.read(looked_at, None))
}

/// Reads rows of some shards above the cursor, and learns which ids others have.
async fn read_shards(
    connection: &mut PgConnection,
    queries: &RelayQueries,
    request: &LogRequest<'_>,
) -> Result<LogRead, sqlx::Error> {
    let mut rows = sqlx::query(AssertSqlSafe(Arc::clone(&queries.read_shards)))
        .bind(request.after)
        .bind(request.up_to)
        .bind(as_i64(request.limit))
        .bind(request.shards.bits())
        .fetch(connection);
    let mut arriving = Arriving::new(request);
    let mut looked_at = 0;
    let mut passed = None;
    while let Some(row) = rows.try_next().await? {
        if let Some(all) = row.try_get::<Option<i64>, _>(16)? {
            looked_at = usize::try_from(all).unwrap_or_default();
            passed = read_passed(&row)?;
        } else if !arriving.is_full() {
            arriving.take(read_wanted_row(&row)?)?;
        }
    }
    Ok(arriving.read(looked_at, passed))
}

/// What was passed; nothing where there was no row at all.
fn read_passed(row: &PgRow) -> Result<Option<Passed>, sqlx::Error> {
    let Some(last) = row.try_get(0)? else {
        return Ok(None);
    };
    let ends: Vec<i64> = row.try_get::<Option<_>, _>(17)?.unwrap_or_default();
    let range = |ends: &[i64]| match ends {
        [first, last] => Some((*first, *last)),
        _ => None,
    };
    Ok(Some(Passed {
        last,
        missing: ends.chunks(2).filter_map(range).collect(),
    }))
}

// Which types the columns have is said by the SQL beside this; to look at each of each row takes time.

fn read_wanted_row(row: &PgRow) -> Result<LogRow, sqlx::Error> {
    let shard: Option<i16> = row.try_get_unchecked(1)?;
    let read = read_message(row, 2);
    Ok(LogRow {
        id: row.try_get_unchecked(0)?,
        shard: shard.or(read.shard).unwrap_or_default(),
        content: read.content,
    })
}

fn read_row(row: &PgRow) -> Result<LogRow, sqlx::Error> {
    let id = row.try_get_unchecked(0)?;
    let shard: Option<i16> = row.try_get_unchecked(1)?;
    if let (Some(shard), false) = (shard, row.try_get_unchecked(2)?) {
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

/// Reads an envelope whose first column has that index. A foreign writer can store times that are
/// none of ours: such a row is unreadable.
pub(super) fn read_message(row: &PgRow, first: usize) -> ReadMessage {
    let text = |offset: usize| row.try_get_unchecked(first + offset).ok().flatten();
    match read_columns(row, first) {
        Ok(stored) => stored.into(),
        Err(error) => ReadMessage::unreadable(&error, text(1), text(3).zip(text(4))),
    }
}

fn read_columns(row: &PgRow, first: usize) -> Result<StoredMessage, sqlx::Error> {
    Ok(StoredMessage {
        message_id: row.try_get_unchecked(first)?,
        event_type: row.try_get_unchecked(first + 1)?,
        schema_version: row.try_get_unchecked(first + 2)?,
        aggregate_type: row.try_get_unchecked(first + 3)?,
        aggregate_id: row.try_get_unchecked(first + 4)?,
        sequence: row.try_get_unchecked(first + 5)?,
        correlation_id: row.try_get_unchecked(first + 6)?,
        causation_id: row.try_get_unchecked(first + 7)?,
        producer: row.try_get_unchecked(first + 8)?,
        occurred_at: row
            .try_get_unchecked::<Option<_>, _>(first + 9)?
            .ok_or_else(|| sqlx::Error::Decode(OUT_OF_RANGE.into()))?,
        traceparent: row.try_get_unchecked(first + 10)?,
        tracestate: row.try_get_unchecked(first + 11)?,
        headers: row.try_get_unchecked(first + 12)?,
        payload: row.try_get_unchecked(first + 13)?,
    })
}

fn read_leases(rows: &[PgRow]) -> Result<Vec<ShardLease>, sqlx::Error> {
    let lease = |row: &PgRow| {
        Ok(ShardLease {
            shard: row.try_get(0)?,
            epoch: row.try_get(1)?,
            position: row.try_get(2)?,
        })
    };
    rows.iter().map(lease).collect()
}

fn columns(shards: &[ShardLease]) -> (Vec<i16>, Vec<i64>, Vec<i64>) {
    let numbers = shards.iter().map(|lease| lease.shard).collect();
    let epochs = shards.iter().map(|lease| lease.epoch).collect();
    let positions = shards.iter().map(|lease| lease.position).collect();
    (numbers, epochs, positions)
}

pub(super) fn as_i64(number: usize) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
