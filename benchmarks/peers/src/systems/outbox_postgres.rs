//! outbox-core with outbox-postgres: one UPDATE to claim a batch, one to mark it as sent.

use std::sync::Arc;

use anyhow::Result;
use async_trait::async_trait;
use outbox_core::{
    Event, OutboxConfig, OutboxError, OutboxManager, OutboxManagerBuilder, Transport,
};
use outbox_postgres::PostgresOutbox;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use uuid::Uuid;

use outbox_bench_harness::{About, Database, Done, Drain, Message, Seen, System, Tuning, rows};

use crate::pool::pool;

type Manager = OutboxManager<PostgresOutbox<Message>, Publish, Message>;

pub(super) struct OutboxPostgres;

#[async_trait(?Send)]
impl System for OutboxPostgres {
    fn about(&self) -> About {
        About {
            name: "outbox-postgres",
            version: concat!(
                env!("PEER_OUTBOX_POSTGRES"),
                " with outbox-core ",
                env!("PEER_OUTBOX_CORE")
            ),
            license: "MIT",
            work: "two UPDATEs of a row, both with its batch: status Processing, status Sent",
            // Workers are managers, each of which claims, hands over and marks a batch in turn.
            tuning: Tuning {
                workers: 2,
                batch: 5_000,
            },
            filled: "SELECT count(*) FROM outbox_events WHERE status = 'Pending'",
            // The condition of its own partial index.
            done: Done::NothingLeft(
                "SELECT 1::bigint FROM outbox_events WHERE status IN ('Pending', 'Processing') LIMIT 1",
            ),
        }
    }

    async fn install(&self, database: &Database) -> Result<()> {
        // The tables without those of the optional dead-letter feature, as the package ships them.
        let sql = include_str!(concat!(env!("OUT_DIR"), "/outbox_postgres.sql"));
        sqlx::raw_sql(sql)
            .execute(&mut database.connect().await?)
            .await?;
        Ok(())
    }

    /// As `PostgresWriter` does, but many at a time: it takes one message a statement.
    async fn fill(&self, database: &Database, rows: u64) -> Result<()> {
        const INSERT: &str = "INSERT INTO outbox_events (id, idempotency_token, event_type, payload, status, created_at, locked_until) \
             SELECT id, NULL, 'bench.message', payload::jsonb, 'Pending', now(), to_timestamp(0) \
             FROM unnest($1::uuid[], $2::text[]) AS new (id, payload)";
        rows::insert(&mut database.connect().await?, INSERT, Uuid::new_v4, rows).await
    }

    async fn drain(
        &self,
        database: &Database,
        seen: Arc<Seen>,
        tuning: Tuning,
    ) -> Result<Box<dyn Drain>> {
        let mut config = OutboxConfig::default();
        config.batch_size = tuning.batch;
        // A manager that found nothing sleeps until a notification or this; seconds are its unit.
        config.poll_interval_secs = 1;
        let config = Arc::new(config);
        let publisher = Arc::new(Publish(seen));
        let (stop, stopped) = watch::channel(false);
        // A manager holds one connection to listen, and one while it works.
        let pool = pool(database, tuning.workers.saturating_mul(2)).await?;
        let mut idle = Vec::new();
        for _ in 0..tuning.workers {
            let manager = OutboxManagerBuilder::new()
                .storage(Arc::new(PostgresOutbox::new(
                    pool.clone(),
                    Arc::clone(&config),
                )))
                .publisher(Arc::clone(&publisher))
                .config(Arc::clone(&config))
                .shutdown_rx(stopped.clone())
                .build()?;
            idle.push(manager);
        }
        Ok(Box::new(Managers {
            idle,
            running: Vec::new(),
            stop,
        }))
    }
}

struct Publish(Arc<Seen>);

#[async_trait]
impl Transport<Message> for Publish {
    async fn publish(&self, event: Event<Message>) -> Result<(), OutboxError> {
        self.0.handle(event.payload.as_value());
        Ok(())
    }
}

struct Managers {
    idle: Vec<Manager>,
    running: Vec<JoinHandle<Result<(), OutboxError>>>,
    stop: watch::Sender<bool>,
}

#[async_trait(?Send)]
impl Drain for Managers {
    async fn start(&mut self) -> Result<()> {
        for manager in self.idle.drain(..) {
            self.running.push(tokio::spawn(manager.run()));
        }
        Ok(())
    }

    async fn stop(self: Box<Self>) -> Result<()> {
        self.stop.send_replace(true);
        for manager in self.running {
            manager.await??;
        }
        Ok(())
    }
}
