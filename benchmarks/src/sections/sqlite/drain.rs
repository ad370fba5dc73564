use std::time::Duration;

use anyhow::{Result, ensure};
use async_trait::async_trait;
use outbox_runtime::relay::Relay;
use sqlx::FromRow;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::File;
use crate::bench::Bench;
use crate::contest::{Contestant, pair};
use crate::line::{Goal, Line};
use crate::sections::Nowhere;
use crate::sections::relay::AGGREGATES;

/// How often the positions are looked at while the relay works.
const LOOK: Duration = Duration::from_millis(10);

/// As many rows a statement as our relay asks for.
const LIMIT: i64 = 800;

const SELECT: &str = "SELECT id, message_id, event_type, schema_version, aggregate_type,
        aggregate_id, sequence, correlation_id, causation_id, producer, occurred_at, payload
    FROM outbox_message WHERE id > $1 ORDER BY id LIMIT $2";

pub(super) async fn compare(bench: &Bench) -> Result<Line> {
    let file = File::create().await?;
    let rows = bench.rows(300_000, 50_000);
    bench.progress.say(format!("filling in {rows} rows"));
    fill(&file, rows).await?;
    let mut ours = Drain { file: &file, rows };
    let mut theirs = PlainSelect { file: &file, rows };
    let (ours, theirs) = pair(bench, &mut ours, &mut theirs).await?;
    file.remove().await?;
    Ok(Line::compare(
        format!("SQLite, drain {rows} rows | plain SELECT"),
        "rows/s",
        Goal::AtLeast(0.7),
        &ours,
        &theirs,
    ))
}

/// Fills the log with so many rows, their payloads of 300 bytes.
async fn fill(file: &File, rows: i64) -> Result<()> {
    sqlx::query(
        "WITH RECURSIVE numbers (n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM numbers WHERE n < $1 - 1)
         INSERT INTO outbox_message (
            shard, message_id, event_type, schema_version, aggregate_type, aggregate_id, sequence,
            payload, correlation_id, producer
         )
         SELECT
            (n % $2) % 64, randomblob(16), 'bench.deposited', 1, 'Account', CAST(n % $2 AS TEXT),
            n / $2 + 1, '{\"n\":' || n || ',\"note\":\"' || substr(hex(zeroblob(150)), 1, 300 - 16 - length(n)) || '\"}',
            hex(randomblob(18)), 'bench'
         FROM numbers",
    )
    .bind(rows)
    .bind(AGGREGATES)
    .execute(&file.pool)
    .await?;
    file.settle().await
}

/// Our relay, until its positions are behind the last row.
struct Drain<'s> {
    file: &'s File,
    rows: i64,
}

impl Drain<'_> {
    async fn until_settled(&self) -> Result<()> {
        loop {
            let lowest: i64 = sqlx::query_scalar("SELECT min(position) FROM outbox_shard")
                .fetch_one(&self.file.pool)
                .await?;
            if lowest >= self.rows {
                return Ok(());
            }
            tokio::time::sleep(LOOK).await;
        }
    }
}

#[async_trait]
impl Contestant for Drain<'_> {
    fn name(&self) -> String {
        "SQLite, our relay".to_owned()
    }

    async fn run(&mut self) -> Result<Vec<f64>> {
        self.file
            .script(
                "UPDATE outbox_shard SET position = 0, owner = NULL, lease_until = NULL;
                 DELETE FROM outbox_journal; DELETE FROM outbox_relay",
            )
            .await?;
        self.file.settle().await?;
        let nowhere = Nowhere::new();
        let relay = Relay::new(self.file.outbox.clone(), nowhere.clone());
        let stop = CancellationToken::new();
        let began = Instant::now();
        let stopped = stop.clone().cancelled_owned();
        let running = tokio::spawn(async move { relay.run_until(stopped).await });
        self.until_settled().await?;
        let took = began.elapsed();
        stop.cancel();
        running.await?;
        nowhere.check(self.rows)?;
        Ok(vec![self.rows as f64 / took.as_secs_f64()])
    }
}

/// The physical limit: reads the whole log into values, and does nothing with them.
struct PlainSelect<'s> {
    file: &'s File,
    rows: i64,
}

#[derive(FromRow)]
#[allow(dead_code, reason = "only read")]
struct Row {
    id: i64,
    message_id: Uuid,
    event_type: String,
    schema_version: i32,
    aggregate_type: Option<String>,
    aggregate_id: Option<String>,
    sequence: Option<i64>,
    correlation_id: Option<String>,
    causation_id: Option<String>,
    producer: Option<String>,
    occurred_at: i64,
    payload: String,
}

#[async_trait]
impl Contestant for PlainSelect<'_> {
    fn name(&self) -> String {
        "SQLite, plain SELECT".to_owned()
    }

    async fn run(&mut self) -> Result<Vec<f64>> {
        let mut connection = self.file.pool.acquire().await?;
        let began = Instant::now();
        let (mut last, mut seen) = (0, 0);
        loop {
            let rows: Vec<Row> = sqlx::query_as(SELECT)
                .bind(last)
                .bind(LIMIT)
                .fetch_all(&mut *connection)
                .await?;
            let Some(row) = rows.last() else {
                break;
            };
            last = row.id;
            seen += i64::try_from(rows.len())?;
        }
        let took = began.elapsed();
        ensure!(
            seen == self.rows,
            "{seen} rows were read, not {}",
            self.rows
        );
        Ok(vec![self.rows as f64 / took.as_secs_f64()])
    }
}
