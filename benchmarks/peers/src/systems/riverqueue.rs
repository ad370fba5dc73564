//! riverqueue: an UPDATE to take a batch of jobs, an UPDATE to complete a batch.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use async_trait::async_trait;
use riverqueue::migrate::PostgresMigrator;
use riverqueue::{Client, Job, JobArgs, QueueConfig, RunHandle, WorkContext, WorkOutcome, Workers};
use serde::{Deserialize, Serialize};

use outbox_bench_harness::{About, Database, Done, Drain, Message, Seen, System, Tuning};

const CONNECTIONS: u32 = 10;
const CHUNK: u64 = 5_000;

pub(super) struct Riverqueue;

#[async_trait(?Send)]
impl System for Riverqueue {
    fn about(&self) -> About {
        About {
            name: "riverqueue",
            version: env!("PEER_RIVERQUEUE"),
            license: "MPL-2.0",
            work: "two UPDATEs of a row, both with its batch: state running, state completed",
            // Workers are jobs in work at a time; it fetches as many as are free, so that this is the batch,
            // too. 10,000 is the most it takes, and slower. It completes in batches of its own accord.
            tuning: Tuning {
                workers: 5_000,
                batch: 5_000,
            },
            filled: "SELECT count(*) FROM river_job WHERE state = 'available'",
            // Its index begins with the state.
            done: Done::NothingLeft(
                "SELECT id FROM river_job WHERE state IN \
                 ('available', 'cancelled', 'discarded', 'pending', 'retryable', 'running', 'scheduled') LIMIT 1",
            ),
        }
    }

    async fn install(&self, database: &Database) -> Result<()> {
        PostgresMigrator::new(database.pool(1).await?)
            .migrate_up()
            .await?;
        Ok(())
    }

    async fn fill(&self, database: &Database, rows: u64) -> Result<()> {
        let client = Client::builder(database.pool(1).await?).build()?;
        for messages in Message::chunks(rows, CHUNK) {
            client.insert_many(messages.into_iter().map(Bench)).await?;
        }
        Ok(())
    }

    async fn drain(
        &self,
        database: &Database,
        seen: Arc<Seen>,
        tuning: Tuning,
    ) -> Result<Box<dyn Drain>> {
        let mut workers = Workers::new();
        workers.add_fn(move |_: WorkContext, job: Job<Bench>| {
            seen.handle(&job.args.0);
            async { Ok::<_, Infallible>(WorkOutcome::Complete) }
        })?;
        // Throughput is limited by the pause between fetches, it says; this is the least that it takes.
        let queue = QueueConfig::new(usize::try_from(tuning.workers)?)
            .with_fetch_cooldown(Duration::from_millis(1))
            .with_fetch_poll_interval(Duration::from_millis(5));
        let client = Client::builder(database.pool(CONNECTIONS).await?)
            .workers(workers)
            .queue("default", queue)
            .build()?;
        Ok(Box::new(Running {
            client,
            running: None,
        }))
    }
}

/// The message as a type of this crate, for which it can implement the system's trait.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(transparent)]
struct Bench(Message);

impl JobArgs for Bench {
    const KIND: &'static str = "bench_message";
}

struct Running {
    client: Client,
    running: Option<RunHandle>,
}

#[async_trait(?Send)]
impl Drain for Running {
    async fn start(&mut self) -> Result<()> {
        self.running = Some(self.client.start()?);
        Ok(())
    }

    async fn stop(self: Box<Self>) -> Result<()> {
        let mut running = self.running.context("it was never started")?;
        Ok(running.stop().await?)
    }
}
