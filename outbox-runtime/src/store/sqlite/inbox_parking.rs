use std::sync::Arc;
use std::time::Duration;

use sqlx::sqlite::{Sqlite, SqliteConnection, SqliteRow};
use sqlx::{AssertSqlSafe, Row};
use time::OffsetDateTime;

use super::inbox::InboxQueries;
use crate::domain::MessageId;
use crate::store::inbox_parking::{
    ANY_VERSION, LONGEST_WAIT, PARKING, ParkedColumns, TAKING, TakenColumns,
};
use crate::store::stored_message::StoredMessage;
use crate::store::{
    Error, FailedAgain, InboxParkingStore, Parked, ParkedHead, TakenOut, ToSetAside, Trouble,
};

impl InboxParkingStore for Sqlite {
    async fn set_aside(
        connection: &mut SqliteConnection,
        queries: &InboxQueries,
        to_set_aside: ToSetAside<'_>,
    ) -> Result<Parked, Error> {
        let is_handled: bool = sqlx::query_scalar(AssertSqlSafe(Arc::clone(&queries.done)))
            .bind(to_set_aside.consumer)
            .bind(to_set_aside.idempotency_key)
            .fetch_one(&mut *connection)
            .await
            .map_err(Error::database(PARKING))?;
        if is_handled {
            return Ok(Parked::Handled);
        }
        let metadata = &to_set_aside.message.metadata;
        let columns = ParkedColumns::of(metadata)?;
        let new: Option<i64> = sqlx::query_scalar(AssertSqlSafe(Arc::clone(&queries.park)))
            .bind(to_set_aside.consumer)
            .bind(&columns.lane)
            .bind(to_set_aside.idempotency_key)
            .bind(to_set_aside.state.as_str())
            .bind(to_set_aside.holds)
            .bind(as_millis(to_set_aside.wait))
            .bind(to_set_aside.cause)
            .bind(metadata.message_id.as_uuid())
            .bind(&metadata.event_type)
            .bind(i64::from(metadata.schema_version))
            .bind(&columns.aggregate_type)
            .bind(&columns.aggregate_id)
            .bind(columns.sequence)
            .bind(&metadata.correlation_id)
            .bind(&metadata.causation_id)
            .bind(&metadata.producer)
            .bind(unix_millis(columns.occurred_at))
            .bind(columns.occurred_nanos)
            .bind(&metadata.traceparent)
            .bind(&metadata.tracestate)
            .bind(&columns.headers)
            .bind(&to_set_aside.message.payload)
            .fetch_optional(&mut *connection)
            .await
            .map_err(Error::database(PARKING))?;
        let Some(id) = new else {
            return Ok(Parked::Before);
        };
        if let Some(cause) = to_set_aside.cause {
            record(connection, queries, id, 1, cause).await?;
        }
        Ok(Parked::Now)
    }

    async fn parked_heads(
        connection: &mut SqliteConnection,
        queries: &InboxQueries,
        consumers: &[&str],
        most: usize,
    ) -> Result<Vec<ParkedHead>, Error> {
        let heads: Vec<(i64, i64)> = sqlx::query_as(AssertSqlSafe(Arc::clone(&queries.heads)))
            .bind(as_json(consumers))
            .bind(i64::try_from(most).unwrap_or(i64::MAX))
            .fetch_all(connection)
            .await
            .map_err(Error::database("looking for parked messages"))?;
        Ok(heads
            .into_iter()
            .map(|(id, wait)| ParkedHead {
                id,
                wait: from_millis(wait),
            })
            .collect())
    }

    async fn take_out(
        connection: &mut SqliteConnection,
        queries: &InboxQueries,
        id: i64,
    ) -> Result<Option<TakenOut>, Error> {
        let row = sqlx::query(AssertSqlSafe(Arc::clone(&queries.take_out)))
            .bind(id)
            .fetch_optional(connection)
            .await
            .map_err(Error::database(TAKING))?;
        row.map(|row| read_taken(&row)?.into_taken(id))
            .transpose()
            .map_err(Error::database(TAKING))
    }

    async fn failed_again(
        connection: &mut SqliteConnection,
        queries: &InboxQueries,
        failed: FailedAgain<'_>,
    ) -> Result<bool, Error> {
        let doing = || Error::database("recording a failed attempt");
        let attempts = i32::try_from(failed.attempts).unwrap_or(i32::MAX);
        let result = sqlx::query(AssertSqlSafe(Arc::clone(&queries.failed_again)))
            .bind(failed.id)
            .bind(attempts)
            .bind(failed.state.as_str())
            .bind(failed.holds)
            .bind(as_millis(failed.wait))
            .bind(failed.cause)
            .execute(&mut *connection)
            .await
            .map_err(doing())?;
        if result.rows_affected() == 0 {
            return Ok(false);
        }
        let attempt = attempts.saturating_add(1);
        record(connection, queries, failed.id, attempt, failed.cause).await?;
        sqlx::query(AssertSqlSafe(Arc::clone(&queries.forget_attempts)))
            .bind(failed.id)
            .execute(connection)
            .await
            .map_err(doing())?;
        Ok(true)
    }

    async fn trouble(
        connection: &mut SqliteConnection,
        queries: &InboxQueries,
        consumers: &[&str],
        linked: &[&str],
        attempts: u32,
    ) -> Result<Vec<Trouble>, Error> {
        let doing = || Error::database("counting parked messages");
        let rows = sqlx::query(AssertSqlSafe(Arc::clone(&queries.trouble)))
            .bind(as_json(consumers))
            .bind(i64::from(attempts))
            .bind(as_json(linked))
            .fetch_all(connection)
            .await
            .map_err(doing())?;
        rows.iter()
            .map(read_trouble)
            .collect::<Result<_, _>>()
            .map_err(doing())
    }
}

async fn record(
    connection: &mut SqliteConnection,
    queries: &InboxQueries,
    parked_id: i64,
    attempt: i32,
    cause: &str,
) -> Result<(), Error> {
    sqlx::query(AssertSqlSafe(Arc::clone(&queries.attempted)))
        .bind(parked_id)
        .bind(attempt)
        .bind(cause)
        .execute(connection)
        .await
        .map(drop)
        .map_err(Error::database("recording a failed attempt"))
}

fn as_millis(wait: Duration) -> i64 {
    i64::try_from(wait.min(LONGEST_WAIT).as_millis()).unwrap_or(i64::MAX)
}

fn from_millis(millis: i64) -> Duration {
    Duration::from_millis(u64::try_from(millis).unwrap_or_default())
}

fn unix_millis(time: OffsetDateTime) -> i64 {
    i64::try_from(time.unix_timestamp_nanos().div_euclid(1_000_000)).unwrap_or_default()
}

fn as_json(consumers: &[&str]) -> String {
    serde_json::Value::from(consumers).to_string()
}

fn read_taken(row: &SqliteRow) -> Result<TakenColumns, sqlx::Error> {
    let millis: i64 = row.try_get(12)?;
    let occurred_at = OffsetDateTime::from_unix_timestamp_nanos(i128::from(millis) * 1_000_000)
        .map_err(|error| sqlx::Error::Decode(error.into()))?;
    Ok(TakenColumns {
        consumer: row.try_get(0)?,
        attempts: row.try_get(1)?,
        age: from_millis(row.try_get(2)?),
        schema_version: row.try_get(5)?,
        occurred_at,
        occurred_nanos: row.try_get(13)?,
        stored: StoredMessage {
            message_id: row.try_get(3)?,
            event_type: row.try_get(4)?,
            schema_version: ANY_VERSION,
            aggregate_type: row.try_get(6)?,
            aggregate_id: row.try_get(7)?,
            sequence: row.try_get(8)?,
            correlation_id: row.try_get(9)?,
            causation_id: row.try_get(10)?,
            producer: row.try_get(11)?,
            occurred_at,
            traceparent: row.try_get(14)?,
            tracestate: row.try_get(15)?,
            headers: row.try_get(16)?,
            payload: row.try_get(17)?,
        },
    })
}

fn read_trouble(row: &SqliteRow) -> Result<Trouble, sqlx::Error> {
    Ok(Trouble {
        consumer: row.try_get(0)?,
        dead: row.try_get(1)?,
        failing: row.try_get(2)?,
        parked: row.try_get(3)?,
        is_orphaned: row.try_get(8)?,
        stuck: row.try_get(9)?,
        message_id: MessageId::from_uuid(row.try_get(4)?),
        event_type: row.try_get(5)?,
        schema_version: row.try_get(6)?,
        cause: row.try_get(7)?,
    })
}
