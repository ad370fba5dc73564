//! hexeract-outbox-sql: claims a batch by an UPDATE, then marks every message in a transaction of its own.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Result, anyhow};
use async_trait::async_trait;
use hexeract_core::HandlerContext;
use hexeract_outbox::{
    ErasedHandler, Event, Handler, OutboxError, OutboxWorker, OutboxWorkerConfig, TypedHandler,
};
use hexeract_outbox_sql::PgOutboxStore;
use hexeract_outbox_sql::postgres::ensure_schema;
use serde::{Deserialize, Serialize};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use outbox_bench_harness::{About, Database, Done, Drain, Message, Seen, System, Tuning, rows};

use crate::pool::pool;

const TABLE: &str = "bench_outbox";

pub(super) struct Hexeract;

#[async_trait(?Send)]
impl System for Hexeract {
    fn about(&self) -> About {
        About {
            name: "hexeract-outbox-sql",
            version: env!("PEER_HEXERACT_OUTBOX_SQL"),
            license: "MIT OR Apache-2.0",
            work: "two UPDATEs of a row: claim with its batch, delivered_at alone",
            // A worker hands its batch over one by one and commits after each, so that only more workers make
            // it faster: their commits share a write of the log. Beyond 16 they are in each other's way. A larger
            // batch means fewer polls, and a poll reads its way past everything that was delivered before.
            tuning: Tuning {
                workers: 16,
                batch: 500,
            },
            filled: "SELECT count(*) FROM bench_outbox WHERE delivered_at IS NULL",
            done: Done::NothingLeft(
                "SELECT 1::bigint FROM bench_outbox WHERE delivered_at IS NULL LIMIT 1",
            ),
        }
    }

    async fn install(&self, database: &Database) -> Result<()> {
        Ok(ensure_schema(&pool(database, 1).await?, TABLE).await?)
    }

    /// As `PgOutboxPublisher` does, but many at a time: it takes one message a statement.
    async fn fill(&self, database: &Database, rows: u64) -> Result<()> {
        const INSERT: &str = "INSERT INTO bench_outbox (event_id, event_type, payload, subject_id) \
             SELECT id, 'bench.message', payload::jsonb, NULL FROM unnest($1::uuid[], $2::text[]) AS new (id, payload)";
        rows::insert(&mut database.connect().await?, INSERT, Uuid::now_v7, rows).await
    }

    async fn drain(
        &self,
        database: &Database,
        seen: Arc<Seen>,
        tuning: Tuning,
    ) -> Result<Box<dyn Drain>> {
        let store = PgOutboxStore::new(pool(database, tuning.workers).await?, TABLE)?;
        let config = OutboxWorkerConfig {
            poll_interval: Duration::from_millis(5),
            batch_size: usize::try_from(tuning.batch)?,
            // The documented way to have no pause between full batches.
            min_cycle_delay: Duration::ZERO,
            ..OutboxWorkerConfig::default()
        };
        let workers = (0..tuning.workers)
            .map(|_| {
                let handler: Arc<dyn ErasedHandler> =
                    Arc::new(TypedHandler::new(Publish(Arc::clone(&seen))));
                let handlers = HashMap::from([(Published::EVENT_TYPE, handler)]);
                OutboxWorker::new(store.clone(), handlers, config.clone())
            })
            .collect();
        Ok(Box::new(Workers {
            idle: workers,
            running: Vec::new(),
            cancel: CancellationToken::new(),
        }))
    }
}

/// The message as a type of this crate, for which it can implement the system's trait.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(transparent)]
struct Published(Message);

impl Event for Published {
    const EVENT_TYPE: &'static str = "bench.message";
}

struct Publish(Arc<Seen>);

impl Handler<Published> for Publish {
    type Error = OutboxError;

    async fn handle(&self, event: Published, _: &HandlerContext) -> Result<(), Self::Error> {
        self.0.handle(&event.0);
        Ok(())
    }
}

struct Workers {
    idle: Vec<OutboxWorker<PgOutboxStore>>,
    running: Vec<JoinHandle<Result<(), OutboxError>>>,
    cancel: CancellationToken,
}

#[async_trait(?Send)]
impl Drain for Workers {
    async fn start(&mut self) -> Result<()> {
        for worker in self.idle.drain(..) {
            self.running
                .push(tokio::spawn(worker.run(self.cancel.clone())));
        }
        Ok(())
    }

    async fn stop(self: Box<Self>) -> Result<()> {
        self.cancel.cancel();
        for worker in self.running {
            worker.await?.map_err(|error| anyhow!(error))?;
        }
        Ok(())
    }
}
