use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use sqlx::sqlite::{Sqlite, SqliteArguments, SqliteConnection, SqliteRow};
use sqlx::{AssertSqlSafe, Row, query::Query};
use uuid::Uuid;

use super::relay::{as_i64, as_millis, read_message};
use crate::domain::Shard;
use crate::store::{
    ATTEMPTS_KEPT, DueRequest, DueRow, FailedRow, LaneOutcome, Names, ParkedLane, ParkingStore,
    ShardSet, ToPark,
};

/// The SQL about parked messages of one outbox on SQLite.
#[derive(Debug)]
pub struct ParkingQueries {
    mend: Arc<str>,
    lanes: Arc<str>,
    owned: Arc<str>,
    park_attempt: Arc<str>,
    park: Arc<str>,
    due: Arc<str>,
    behind: Arc<str>,
    gone: Arc<str>,
    gone_attempts: Arc<str>,
    failed: Arc<str>,
    demote: Arc<str>,
    attempt: Arc<str>,
    forget: Arc<str>,
    head: Arc<str>,
    promote: Arc<str>,
}

impl ParkingStore for Sqlite {
    type ParkingQueries = ParkingQueries;

    fn parking_queries(names: &Names) -> ParkingQueries {
        let render = |sql: &str| Arc::from(names.render(sql));
        ParkingQueries {
            mend: render(include_str!("sql/parked_mend.sql")),
            lanes: render(include_str!("sql/parked_lanes.sql")),
            owned: render(include_str!("sql/parked_owned.sql")),
            park_attempt: render(include_str!("sql/park_attempt.sql")),
            park: render(include_str!("sql/park.sql")),
            due: render(include_str!("sql/parked_due.sql")),
            behind: render(include_str!("sql/parked_behind.sql")),
            gone: render(include_str!("sql/parked_gone.sql")),
            gone_attempts: render(include_str!("sql/parked_gone_attempts.sql")),
            failed: render(include_str!("sql/parked_failed.sql")),
            demote: render(include_str!("sql/parked_demote.sql")),
            attempt: render(include_str!("sql/parked_attempt.sql")),
            forget: render(include_str!("sql/parked_forget.sql")),
            head: render(include_str!("sql/parked_head.sql")),
            promote: render(include_str!("sql/parked_promote.sql")),
        }
    }

    async fn parked_lanes(
        connection: &mut SqliteConnection,
        queries: &ParkingQueries,
        shards: ShardSet,
    ) -> Result<Vec<ParkedLane>, sqlx::Error> {
        run(&queries.mend)
            .bind(shards.bits())
            .execute(&mut *connection)
            .await?;
        let lanes: Vec<(i16, String)> = sqlx::query_as(AssertSqlSafe(Arc::clone(&queries.lanes)))
            .bind(shards.bits())
            .fetch_all(connection)
            .await?;
        let lane = |(shard, lane)| ParkedLane { shard, lane };
        Ok(lanes.into_iter().map(lane).collect())
    }

    async fn park(
        connection: &mut SqliteConnection,
        queries: &ParkingQueries,
        instance: Uuid,
        rows: &[ToPark],
    ) -> Result<ShardSet, sqlx::Error> {
        let of = rows.iter().map(|row| (row.shard, row.epoch));
        let owned = owned(connection, queries, instance, of).await?;
        let mut rows: Vec<_> = rows
            .iter()
            .filter(|row| owned.contains(row.shard))
            .collect();
        // Heads first, so that what waits behind them finds them.
        rows.sort_by_key(|row| (row.failure.is_none(), row.id));
        for row in rows {
            let failure = row.failure.as_ref();
            if let Some(failure) = failure {
                run(&queries.park_attempt)
                    .bind(row.id)
                    .bind(&failure.cause)
                    .execute(&mut *connection)
                    .await?;
            }
            run(&queries.park)
                .bind(row.id)
                .bind(row.shard)
                .bind(&row.lane)
                .bind(row.state())
                .bind(failure.and_then(|failure| as_wait(failure.retry_after)))
                .bind(failure.map(|failure| &failure.cause))
                .execute(&mut *connection)
                .await?;
        }
        Ok(owned)
    }

    async fn parked_due(
        connection: &mut SqliteConnection,
        queries: &ParkingQueries,
        request: DueRequest,
    ) -> Result<Vec<DueRow>, sqlx::Error> {
        let heads = run(&queries.due)
            .bind(request.shards.bits())
            .bind(as_i64(request.lanes))
            .bind(as_i64(request.bytes))
            .fetch_all(&mut *connection)
            .await?;
        let bytes_of = |row: &SqliteRow| row.try_get::<i64, _>(19);
        let mut bytes = as_i64(request.bytes);
        for head in &heads {
            bytes -= bytes_of(head)?;
        }
        let mut due = Vec::with_capacity(heads.len());
        for head in &heads {
            let left = request.most.saturating_sub(due.len());
            if left == 0 {
                break;
            }
            let head = read_due(head)?;
            let behind = match head.attempts {
                0 => request.behind.min(left - 1),
                _ => 0,
            };
            let (shard, lane) = (head.shard, head.lane.clone());
            due.push(head);
            if behind > 0 {
                let rows = run(&queries.behind)
                    .bind(shard)
                    .bind(lane)
                    .bind(as_i64(behind))
                    .bind(bytes)
                    .fetch_all(&mut *connection)
                    .await?;
                for row in &rows {
                    bytes -= bytes_of(row)?;
                    due.push(read_due(row)?);
                }
            }
        }
        Ok(due)
    }

    async fn settle_parked(
        connection: &mut SqliteConnection,
        queries: &ParkingQueries,
        instance: Uuid,
        outcomes: &[&LaneOutcome],
    ) -> Result<Vec<ParkedLane>, sqlx::Error> {
        let of = outcomes
            .iter()
            .map(|outcome| (outcome.shard, outcome.epoch));
        let owned = owned(connection, queries, instance, of).await?;
        let mut empty = Vec::new();
        for outcome in outcomes.iter().filter(|one| owned.contains(one.shard)) {
            for id in &outcome.published {
                for sql in [&queries.gone, &queries.gone_attempts] {
                    run(sql).bind(id).execute(&mut *connection).await?;
                }
            }
            if let Some(failed) = &outcome.failed {
                write_down(connection, queries, outcome, failed).await?;
            }
            let head: Option<(i64, bool)> =
                sqlx::query_as(AssertSqlSafe(Arc::clone(&queries.head)))
                    .bind(outcome.shard)
                    .bind(&outcome.lane)
                    .fetch_optional(&mut *connection)
                    .await?;
            match head {
                None => empty.push(ParkedLane {
                    shard: outcome.shard,
                    lane: outcome.lane.clone(),
                }),
                Some((_, false)) => {}
                Some((id, true)) => {
                    run(&queries.promote)
                        .bind(id)
                        .execute(&mut *connection)
                        .await?;
                }
            }
        }
        Ok(empty)
    }
}

async fn owned(
    connection: &mut SqliteConnection,
    queries: &ParkingQueries,
    instance: Uuid,
    shards: impl Iterator<Item = (Shard, i64)> + Send,
) -> Result<ShardSet, sqlx::Error> {
    let given: HashSet<_> = shards.collect();
    let given: Vec<_> = given
        .into_iter()
        .map(|(shard, epoch)| format!("[{shard},{epoch}]"))
        .collect();
    let owned: Vec<i16> = sqlx::query_scalar(AssertSqlSafe(Arc::clone(&queries.owned)))
        .bind(instance)
        .bind(format!("[{}]", given.join(",")))
        .fetch_all(connection)
        .await?;
    Ok(owned.into_iter().collect())
}

async fn write_down(
    connection: &mut SqliteConnection,
    queries: &ParkingQueries,
    outcome: &LaneOutcome,
    failed: &FailedRow,
) -> Result<(), sqlx::Error> {
    let changed = run(&queries.failed)
        .bind(failed.id)
        .bind(failed.attempts)
        .bind(failed.failure.state())
        .bind(as_wait(failed.failure.retry_after))
        .bind(&failed.failure.cause)
        .bind(failed.goes_to.as_deref())
        .execute(&mut *connection)
        .await?;
    if changed.rows_affected() == 0 {
        return Ok(());
    }
    if failed.goes_to.is_none() {
        run(&queries.demote)
            .bind(outcome.shard)
            .bind(&outcome.lane)
            .bind(failed.id)
            .execute(&mut *connection)
            .await?;
    }
    run(&queries.attempt)
        .bind(failed.id)
        .bind(failed.attempts)
        .bind(&failed.failure.cause)
        .execute(&mut *connection)
        .await?;
    run(&queries.forget)
        .bind(failed.id)
        .bind(ATTEMPTS_KEPT)
        .execute(connection)
        .await
        .map(drop)
}

fn run(sql: &Arc<str>) -> Query<'static, Sqlite, SqliteArguments> {
    sqlx::query(AssertSqlSafe(Arc::clone(sql)))
}

fn read_due(row: &SqliteRow) -> Result<DueRow, sqlx::Error> {
    let failing_for: Option<f64> = row.try_get(4)?;
    Ok(DueRow {
        id: row.try_get(0)?,
        shard: row.try_get(1)?,
        lane: row.try_get(2)?,
        attempts: row.try_get(3)?,
        failing_for: Duration::try_from_secs_f64(failing_for.unwrap_or_default())
            .unwrap_or_default(),
        content: read_message(row, 5).content,
    })
}

/// Bounded, so that no wait leaves the range of the database's times.
fn as_wait(wait: Option<Duration>) -> Option<i64> {
    wait.map(|wait| as_millis(wait).min(LONGEST_WAIT_MS))
}

const LONGEST_WAIT_MS: i64 = 10_000_000_000_000;
