use std::sync::Arc;
use std::time::Duration;

use sqlx::postgres::{PgConnection, PgRow, Postgres};
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

impl InboxParkingStore for Postgres {
    async fn set_aside(
        connection: &mut PgConnection,
        queries: &InboxQueries,
        to_set_aside: ToSetAside<'_>,
    ) -> Result<Parked, Error> {
        let metadata = &to_set_aside.message.metadata;
        let columns = ParkedColumns::of(metadata)?;
        let row = sqlx::query(AssertSqlSafe(Arc::clone(&queries.park)))
            .bind(to_set_aside.consumer)
            .bind(&columns.lane)
            .bind(to_set_aside.idempotency_key)
            .bind(to_set_aside.state.as_str())
            .bind(to_set_aside.holds)
            .bind(as_seconds(to_set_aside.wait))
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
            .bind(columns.occurred_at)
            .bind(columns.occurred_nanos)
            .bind(&metadata.traceparent)
            .bind(&metadata.tracestate)
            .bind(&columns.headers)
            .bind(&to_set_aside.message.payload)
            .fetch_one(connection)
            .await
            .map_err(Error::database(PARKING))?;
        let is_handled: bool = row.try_get(0).map_err(Error::database(PARKING))?;
        let is_new: bool = row.try_get(1).map_err(Error::database(PARKING))?;
        Ok(match (is_handled, is_new) {
            (true, _) => Parked::Handled,
            (false, true) => Parked::Now,
            (false, false) => Parked::Before,
        })
    }

    async fn parked_heads(
        connection: &mut PgConnection,
        queries: &InboxQueries,
        consumers: &[&str],
        most: usize,
    ) -> Result<Vec<ParkedHead>, Error> {
        let heads: Vec<(i64, f64)> = sqlx::query_as(AssertSqlSafe(Arc::clone(&queries.heads)))
            .bind(consumers)
            .bind(i64::try_from(most).unwrap_or(i64::MAX))
            .fetch_all(connection)
            .await
            .map_err(Error::database("looking for parked messages"))?;
        Ok(heads
            .into_iter()
            .map(|(id, wait)| ParkedHead {
                id,
                wait: from_seconds(wait),
            })
            .collect())
    }

    async fn take_out(
        connection: &mut PgConnection,
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
        connection: &mut PgConnection,
        queries: &InboxQueries,
        failed: FailedAgain<'_>,
    ) -> Result<bool, Error> {
        let updated: i64 = sqlx::query_scalar(AssertSqlSafe(Arc::clone(&queries.failed_again)))
            .bind(failed.id)
            .bind(i32::try_from(failed.attempts).unwrap_or(i32::MAX))
            .bind(failed.state.as_str())
            .bind(failed.holds)
            .bind(as_seconds(failed.wait))
            .bind(failed.cause)
            .fetch_one(connection)
            .await
            .map_err(Error::database("recording a failed attempt"))?;
        Ok(updated == 1)
    }

    async fn trouble(
        connection: &mut PgConnection,
        queries: &InboxQueries,
        consumers: &[&str],
        linked: &[&str],
        attempts: u32,
    ) -> Result<Vec<Trouble>, Error> {
        let doing = || Error::database("counting parked messages");
        let rows = sqlx::query(AssertSqlSafe(Arc::clone(&queries.trouble)))
            .bind(consumers)
            .bind(i32::try_from(attempts).unwrap_or(i32::MAX))
            .bind(linked)
            .fetch_all(connection)
            .await
            .map_err(doing())?;
        rows.iter()
            .map(read_trouble)
            .collect::<Result<_, _>>()
            .map_err(doing())
    }
}

fn as_seconds(wait: Duration) -> f64 {
    wait.min(LONGEST_WAIT).as_secs_f64()
}

fn from_seconds(seconds: f64) -> Duration {
    Duration::try_from_secs_f64(seconds).unwrap_or_default()
}

fn read_taken(row: &PgRow) -> Result<TakenColumns, sqlx::Error> {
    let occurred_at: OffsetDateTime = row.try_get(12)?;
    Ok(TakenColumns {
        consumer: row.try_get(0)?,
        attempts: row.try_get(1)?,
        age: from_seconds(row.try_get(2)?),
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

fn read_trouble(row: &PgRow) -> Result<Trouble, sqlx::Error> {
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
