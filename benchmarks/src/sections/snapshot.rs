use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use async_trait::async_trait;
use outbox_runtime::relay::Relay;
use sqlx::postgres::{PgConnection, PgPool};
use sqlx::{Connection as _, Executor as _};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::bench::Bench;
use crate::contest::{Contestant, pair};
use crate::line::{Goal, Line};
use crate::postgres::{Database, script};
use crate::sections::relay::{Nowhere, append, start_anew, until_settled};

/// How many rows a statement brings, and how far the log may be ahead of the relay: as many as
/// keep it busy, so that its pace is what is measured.
const ROWS: i64 = 1_000;
const AHEAD: i64 = 20_000;

/// Whether what the relay writes makes it slower while nothing of it can be cleaned up.
pub(crate) async fn run(bench: &Bench) -> Result<Vec<Line>> {
    let database = bench.server.database("snapshot").await?;
    let pool = database.pool(6).await?;
    database.outbox(&pool).await?;
    let span = bench.seconds(60, 5);
    let side = |holds| UnderLoad {
        database: &database,
        pool: &pool,
        span,
        holds,
        is_warm: false,
    };
    let (with, without) = pair(bench, &mut side(true), &mut side(false)).await?;
    pool.close().await;
    database.drop().await?;
    Ok(vec![Line::compare(
        format!("relay under load, a snapshot held for {span:?} | without"),
        "rows/s",
        Goal::AtLeast(0.95),
        &with,
        &without,
    )])
}

/// A relay beside somebody who fills the log as fast as it is read.
struct UnderLoad<'s> {
    database: &'s Database,
    pool: &'s PgPool,
    span: Duration,
    holds: bool,
    is_warm: bool,
}

impl UnderLoad<'_> {
    /// Fills in until the time is over; tells how many rows.
    async fn load(&self, nowhere: &Nowhere, span: Duration) -> Result<i64> {
        let began = Instant::now();
        let mut rows = 0;
        while began.elapsed() < span {
            let (published, _) = nowhere.counts();
            if rows - i64::try_from(published)? >= AHEAD {
                tokio::time::sleep(Duration::from_millis(1)).await;
                continue;
            }
            append(self.pool, rows, ROWS).await?;
            rows += ROWS;
        }
        Ok(rows)
    }
}

#[async_trait]
impl Contestant for UnderLoad<'_> {
    fn name(&self) -> String {
        match self.holds {
            true => "relay beside a snapshot".to_owned(),
            false => "relay without a snapshot".to_owned(),
        }
    }

    async fn run(&mut self) -> Result<Vec<f64>> {
        // The round that warms up need not be as long.
        let span = match std::mem::replace(&mut self.is_warm, true) {
            true => self.span,
            false => self.span / 10,
        };
        script(self.pool, "TRUNCATE outbox_message RESTART IDENTITY").await?;
        start_anew(self.pool).await?;
        let snapshot = match self.holds {
            true => Some(Snapshot::take(self.database).await?),
            false => None,
        };
        let nowhere = Nowhere::new();
        let relay = Relay::new(self.database.outbox(self.pool).await?, nowhere.clone());
        let stop = CancellationToken::new();
        let stopped = stop.clone().cancelled_owned();
        let running = tokio::spawn(async move { relay.run_until(stopped).await });
        let mut connection = self.database.connect().await?;
        let began = Instant::now();
        let rows = self.load(&nowhere, span).await?;
        until_settled(&mut connection, rows).await?;
        let took = began.elapsed();
        if let Some(snapshot) = snapshot {
            snapshot.end().await?;
        }
        stop.cancel();
        running.await?;
        nowhere.check(rows)?;
        Ok(vec![rows as f64 / took.as_secs_f64()])
    }
}

/// A transaction of another session that goes on seeing the positions as they were.
struct Snapshot(PgConnection);

const POSITIONS: &str = "SELECT max(position) FROM outbox_shard";

impl Snapshot {
    async fn take(database: &Database) -> Result<Self> {
        let mut connection = database.connect().await?;
        let begin = "BEGIN ISOLATION LEVEL REPEATABLE READ";
        connection.execute(begin).await?;
        connection.execute(POSITIONS).await?;
        Ok(Self(connection))
    }

    async fn end(mut self) -> Result<()> {
        let seen: i64 = sqlx::query_scalar(POSITIONS)
            .fetch_one(&mut self.0)
            .await
            .context("the snapshot was lost")?;
        ensure!(seen == 0, "the snapshot did not hold: it sees {seen}");
        self.0.close().await?;
        Ok(())
    }
}
