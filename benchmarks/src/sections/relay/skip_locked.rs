use anyhow::{Result, ensure};
use async_trait::async_trait;
use sqlx::Executor as _;
use sqlx::postgres::PgPool;
use tokio::time::Instant;

use super::select::Row;
use crate::contest::Contestant;
use crate::postgres::{Database, script};

/// What most outboxes that are written by hand do with a batch.
const BATCH: i64 = 500;

/// How a row is marked as published.
#[derive(Debug, Clone, Copy)]
pub(super) enum Marks {
    Status,
    Deletion,
}

/// A queue by hand: takes a batch under `SKIP LOCKED` and marks it, in one transaction.
pub(super) struct SkipLocked {
    pool: PgPool,
    rows: i64,
    marks: Marks,
}

impl SkipLocked {
    pub(super) async fn new(database: Database, rows: i64, marks: Marks) -> Result<Self> {
        let pool = database.pool(2).await?;
        script(
            &pool,
            "DROP TABLE IF EXISTS queue;
             CREATE TABLE queue (
                id             bigint      PRIMARY KEY,
                message_id     uuid        NOT NULL,
                event_type     text        NOT NULL,
                schema_version integer     NOT NULL,
                aggregate_type text        NOT NULL,
                aggregate_id   text        NOT NULL,
                sequence       bigint      NOT NULL,
                correlation_id text        NOT NULL,
                causation_id   text,
                producer       text        NOT NULL,
                occurred_at    timestamptz NOT NULL,
                payload        json        NOT NULL,
                status         smallint    NOT NULL DEFAULT 0
             );
             CREATE INDEX queue_pending ON queue (id) WHERE status = 0",
        )
        .await?;
        Ok(Self { pool, rows, marks })
    }

    async fn fill(&self) -> Result<()> {
        script(&self.pool, "TRUNCATE queue").await?;
        sqlx::query(
            "INSERT INTO queue
             SELECT id, message_id, event_type, schema_version, aggregate_type, aggregate_id,
                 sequence, correlation_id, causation_id, producer, occurred_at, payload
             FROM outbox_message ORDER BY id LIMIT $1",
        )
        .bind(self.rows)
        .execute(&self.pool)
        .await?;
        script(&self.pool, "VACUUM ANALYZE queue").await?;
        script(&self.pool, "CHECKPOINT").await
    }

    async fn batch(&self) -> Result<usize> {
        let mut transaction = self.pool.begin().await?;
        let rows: Vec<Row> = sqlx::query_as(
            "SELECT id, message_id, event_type, schema_version, aggregate_type, aggregate_id,
                 sequence, correlation_id, causation_id, producer, occurred_at,
                 payload::text AS payload
             FROM queue WHERE status = 0 ORDER BY id LIMIT $1 FOR UPDATE SKIP LOCKED",
        )
        .bind(BATCH)
        .fetch_all(&mut *transaction)
        .await?;
        let ids: Vec<i64> = rows.iter().map(|row| row.id).collect();
        let mark = match self.marks {
            Marks::Status => "UPDATE queue SET status = 1 WHERE id = ANY($1)",
            Marks::Deletion => "DELETE FROM queue WHERE id = ANY($1)",
        };
        transaction.execute(sqlx::query(mark).bind(ids)).await?;
        transaction.commit().await?;
        Ok(rows.len())
    }
}

#[async_trait]
impl Contestant for SkipLocked {
    fn name(&self) -> String {
        format!("SKIP LOCKED, {:?}", self.marks)
    }

    async fn run(&mut self) -> Result<Vec<f64>> {
        self.fill().await?;
        let began = Instant::now();
        let mut seen = 0_i64;
        loop {
            match self.batch().await? {
                0 => break,
                rows => seen += i64::try_from(rows)?,
            }
        }
        let took = began.elapsed();
        let left: i64 = sqlx::query_scalar("SELECT count(*) FROM queue WHERE status = 0")
            .fetch_one(&self.pool)
            .await?;
        ensure!(left == 0, "{left} rows were left");
        ensure!(
            seen == self.rows,
            "{seen} rows were taken, not {}",
            self.rows
        );
        script(&self.pool, "TRUNCATE queue").await?;
        Ok(vec![self.rows as f64 / took.as_secs_f64()])
    }
}
