//! graphile_worker: an UPDATE to lock a batch of jobs into the process, a DELETE to complete a batch.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use async_trait::async_trait;
use graphile_worker::runner::WorkerRuntimeError;
use graphile_worker::{
    IntoTaskHandlerResult, JobSpec, LocalQueueConfig, RawJobSpec, TaskHandler, Worker,
    WorkerContext, WorkerOptions, WorkerUtils,
};
use serde::{Deserialize, Serialize};
use tokio::task::JoinHandle;

use outbox_bench_harness::{About, Database, Done, Drain, Message, Seen, System, Tuning};

const SCHEMA: &str = "graphile_worker";
/// Beside those of the workers: to listen, to recover.
const CONNECTIONS: u32 = 20;
const CHUNK: u64 = 5_000;

pub(super) struct GraphileWorker;

#[async_trait(?Send)]
impl System for GraphileWorker {
    fn about(&self) -> About {
        About {
            name: "graphile_worker",
            version: env!("PEER_GRAPHILE_WORKER"),
            license: "MIT",
            work: "an UPDATE (lock) and a DELETE of a row, both with its batch",
            // Workers are jobs in work at a time, the batch is what the local queue fetches. Its own benchmark
            // has 500 and 5000.
            tuning: Tuning {
                workers: 500,
                batch: 5_000,
            },
            filled: "SELECT count(*) FROM graphile_worker._private_jobs",
            done: Done::NothingLeft(
                "SELECT id FROM graphile_worker._private_jobs ORDER BY id LIMIT 1",
            ),
        }
    }

    async fn install(&self, database: &Database) -> Result<()> {
        Ok(utils(database).await?.migrate().await?)
    }

    async fn fill(&self, database: &Database, rows: u64) -> Result<()> {
        let utils = utils(database).await?;
        for messages in Message::chunks(rows, CHUNK) {
            let jobs = messages
                .iter()
                .map(|message| {
                    Ok(RawJobSpec {
                        identifier: Bench::IDENTIFIER.to_owned(),
                        payload: serde_json::to_value(message)?,
                        spec: JobSpec::default(),
                    })
                })
                .collect::<Result<Vec<_>>>()?;
            utils.add_raw_jobs(&jobs).await?;
        }
        Ok(())
    }

    async fn drain(
        &self,
        database: &Database,
        seen: Arc<Seen>,
        tuning: Tuning,
    ) -> Result<Box<dyn Drain>> {
        let worker = WorkerOptions::default()
            .pg_pool(database.pool(CONNECTIONS).await?)
            .schema(SCHEMA)
            .concurrency(usize::try_from(tuning.workers)?)
            .poll_interval(Duration::from_millis(5))
            .local_queue(LocalQueueConfig::default().with_size(usize::try_from(tuning.batch)?))
            // What it calls the way to better throughput: completions are deleted together.
            .complete_job_batch_delay(Duration::from_millis(5))
            .add_extension(Publish(seen))
            .define_job::<Bench>()
            .init()
            .await?;
        Ok(Box::new(Running {
            worker: Arc::new(worker),
            running: None,
        }))
    }
}

async fn utils(database: &Database) -> Result<WorkerUtils> {
    Ok(WorkerUtils::new(database.pool(1).await?, SCHEMA))
}

/// The message as a type of this crate, for which it can implement the system's trait.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(transparent)]
struct Bench(Message);

impl TaskHandler for Bench {
    const IDENTIFIER: &'static str = "bench_message";

    async fn run(self, context: WorkerContext) -> impl IntoTaskHandlerResult {
        let publish = context
            .get_ext::<Publish>()
            .ok_or("the worker was set up without its handler")?;
        publish.0.handle(&self.0);
        Ok::<(), &'static str>(())
    }
}

#[derive(Debug, Clone)]
struct Publish(Arc<Seen>);

struct Running {
    worker: Arc<Worker>,
    running: Option<JoinHandle<Result<(), WorkerRuntimeError>>>,
}

#[async_trait(?Send)]
impl Drain for Running {
    async fn start(&mut self) -> Result<()> {
        let worker = Arc::clone(&self.worker);
        self.running = Some(tokio::spawn(async move { worker.run().await }));
        Ok(())
    }

    async fn stop(self: Box<Self>) -> Result<()> {
        self.worker.request_shutdown();
        let running = self.running.context("it was never started")?;
        Ok(running.await??)
    }
}
