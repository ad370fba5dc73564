use std::sync::Arc;
use std::time::Duration;

use sqlx::postgres::{PgConnection, PgRow, Postgres};
use sqlx::{AssertSqlSafe, Row};
use uuid::Uuid;

use super::relay::{as_i64, read_message};
use crate::store::{
    ATTEMPTS_KEPT, DueRequest, DueRow, LaneOutcome, Names, ParkedLane, ParkingStore, ShardSet,
    ToPark,
};

/// The SQL about parked messages of one outbox on PostgreSQL.
#[derive(Debug)]
pub struct ParkingQueries {
    lanes: Arc<str>,
    park: Arc<str>,
    due: Arc<str>,
    settle: Arc<str>,
}

impl ParkingStore for Postgres {
    type ParkingQueries = ParkingQueries;

    fn parking_queries(names: &Names) -> ParkingQueries {
        let render = |sql: &str| Arc::from(names.render(sql));
        ParkingQueries {
            lanes: render(include_str!("sql/parked_lanes.sql")),
            park: render(include_str!("sql/park.sql")),
            due: render(include_str!("sql/parked_due.sql")),
            settle: render(include_str!("sql/parked_settle.sql")),
        }
    }

    async fn parked_lanes(
        connection: &mut PgConnection,
        queries: &ParkingQueries,
        shards: ShardSet,
    ) -> Result<Vec<ParkedLane>, sqlx::Error> {
        let lanes = sqlx::query_as(AssertSqlSafe(Arc::clone(&queries.lanes)))
            .bind(shards.bits())
            .fetch_all(connection)
            .await?;
        Ok(as_lanes(lanes))
    }

    async fn park(
        connection: &mut PgConnection,
        queries: &ParkingQueries,
        instance: Uuid,
        rows: &[ToPark],
    ) -> Result<ShardSet, sqlx::Error> {
        let failures = || rows.iter().map(|row| row.failure.as_ref());
        let delay = |failure: Option<&crate::store::ParkedFailure>| {
            failure.and_then(|failure| as_seconds(failure.retry_after))
        };
        let cause =
            |failure: Option<&crate::store::ParkedFailure>| failure.map(|f| f.cause.clone());
        let owned: Vec<i16> = sqlx::query_scalar(AssertSqlSafe(Arc::clone(&queries.park)))
            .bind(instance)
            .bind(rows.iter().map(|row| row.id).collect::<Vec<_>>())
            .bind(rows.iter().map(|row| row.shard).collect::<Vec<_>>())
            .bind(rows.iter().map(|row| row.epoch).collect::<Vec<_>>())
            .bind(rows.iter().map(|row| &*row.lane).collect::<Vec<_>>())
            .bind(rows.iter().map(ToPark::state).collect::<Vec<_>>())
            .bind(failures().map(delay).collect::<Vec<_>>())
            .bind(failures().map(cause).collect::<Vec<_>>())
            .fetch_all(connection)
            .await?;
        Ok(owned.into_iter().collect())
    }

    async fn parked_due(
        connection: &mut PgConnection,
        queries: &ParkingQueries,
        request: DueRequest,
    ) -> Result<Vec<DueRow>, sqlx::Error> {
        let rows = sqlx::query(AssertSqlSafe(Arc::clone(&queries.due)))
            .bind(request.shards.bits())
            .bind(as_i64(request.lanes))
            .bind(as_i64(request.behind))
            .bind(as_i64(request.most))
            .bind(as_i64(request.bytes))
            .fetch_all(connection)
            .await?;
        rows.iter().map(read_due).collect()
    }

    async fn settle_parked(
        connection: &mut PgConnection,
        queries: &ParkingQueries,
        instance: Uuid,
        outcomes: &[&LaneOutcome],
    ) -> Result<Vec<ParkedLane>, sqlx::Error> {
        let failed = || outcomes.iter().map(|outcome| outcome.failed.as_ref());
        let published = outcomes.iter().flat_map(|outcome| &outcome.published);
        let empty = sqlx::query_as(AssertSqlSafe(Arc::clone(&queries.settle)))
            .bind(instance)
            .bind(outcomes.iter().map(|one| one.shard).collect::<Vec<_>>())
            .bind(outcomes.iter().map(|one| one.epoch).collect::<Vec<_>>())
            .bind(outcomes.iter().map(|one| &*one.lane).collect::<Vec<_>>())
            .bind(
                failed()
                    .map(|row| row.map(|row| row.id))
                    .collect::<Vec<_>>(),
            )
            .bind(
                failed()
                    .map(|row| row.map(|row| as_i32(row.attempts)))
                    .collect::<Vec<_>>(),
            )
            .bind(
                failed()
                    .map(|row| row.map(|row| row.failure.state()))
                    .collect::<Vec<_>>(),
            )
            .bind(
                failed()
                    .map(|row| row.and_then(|row| as_seconds(row.failure.retry_after)))
                    .collect::<Vec<_>>(),
            )
            .bind(
                failed()
                    .map(|row| row.map(|row| &*row.failure.cause))
                    .collect::<Vec<_>>(),
            )
            .bind(
                failed()
                    .map(|row| row.and_then(|row| row.goes_to.as_deref()))
                    .collect::<Vec<_>>(),
            )
            .bind(published.copied().collect::<Vec<_>>())
            .bind(ATTEMPTS_KEPT)
            .fetch_all(connection)
            .await?;
        Ok(as_lanes(empty))
    }
}

fn read_due(row: &PgRow) -> Result<DueRow, sqlx::Error> {
    let failing_for: Option<f64> = row.try_get(4)?;
    Ok(DueRow {
        id: row.try_get(0)?,
        shard: row.try_get(1)?,
        lane: row.try_get(2)?,
        attempts: u32::try_from(row.try_get::<i32, _>(3)?).unwrap_or_default(),
        failing_for: Duration::try_from_secs_f64(failing_for.unwrap_or_default())
            .unwrap_or_default(),
        content: read_message(row, 5).content,
    })
}

fn as_lanes(rows: Vec<(i16, String)>) -> Vec<ParkedLane> {
    rows.into_iter()
        .map(|(shard, lane)| ParkedLane { shard, lane })
        .collect()
}

/// Bounded, so that no wait leaves the range of the database's times.
fn as_seconds(wait: Option<Duration>) -> Option<f64> {
    wait.map(|wait| wait.as_secs_f64().min(LONGEST_WAIT_S))
}

const LONGEST_WAIT_S: f64 = 1e10;

fn as_i32(number: u32) -> i32 {
    i32::try_from(number).unwrap_or(i32::MAX)
}
