use anyhow::{Result, ensure};
use async_trait::async_trait;
use sqlx::FromRow;
use sqlx::postgres::PgConnection;
use time::OffsetDateTime;
use tokio::time::Instant;
use uuid::Uuid;

use crate::contest::Contestant;
use crate::postgres::Database;

/// As many rows a statement as our relay asks for.
const LIMIT: i64 = 800;

const SELECT: &str = "SELECT id, message_id, event_type, schema_version, aggregate_type,
        aggregate_id, sequence, correlation_id, causation_id, producer, occurred_at,
        payload::text AS payload
    FROM outbox_message WHERE id > $1 ORDER BY id LIMIT $2";

/// The physical limit: reads the whole log into values, and does nothing with them.
pub(super) struct PlainSelect {
    database: Database,
    rows: i64,
}

/// A message as a program reads it.
#[derive(FromRow)]
#[allow(dead_code, reason = "only read")]
pub(super) struct Row {
    pub(super) id: i64,
    message_id: Uuid,
    event_type: String,
    schema_version: i32,
    aggregate_type: Option<String>,
    aggregate_id: Option<String>,
    sequence: Option<i64>,
    correlation_id: Option<String>,
    causation_id: Option<String>,
    producer: Option<String>,
    occurred_at: OffsetDateTime,
    payload: String,
}

impl PlainSelect {
    pub(super) const fn new(database: Database, rows: i64) -> Self {
        Self { database, rows }
    }

    async fn read(&self, connection: &mut PgConnection) -> Result<i64> {
        let (mut last, mut seen) = (0, 0);
        loop {
            let rows: Vec<Row> = sqlx::query_as(SELECT)
                .bind(last)
                .bind(LIMIT)
                .fetch_all(&mut *connection)
                .await?;
            let Some(row) = rows.last() else {
                return Ok(seen);
            };
            last = row.id;
            seen += i64::try_from(rows.len())?;
        }
    }
}

#[async_trait]
impl Contestant for PlainSelect {
    fn name(&self) -> String {
        "plain SELECT".to_owned()
    }

    async fn run(&mut self) -> Result<Vec<f64>> {
        let mut connection = self.database.connect().await?;
        let began = Instant::now();
        let seen = self.read(&mut connection).await?;
        let took = began.elapsed();
        ensure!(
            seen == self.rows,
            "{seen} rows were read, not {}",
            self.rows
        );
        Ok(vec![self.rows as f64 / took.as_secs_f64()])
    }
}
