//! awa: appends what was claimed and what was completed, in batches, and drops whole partitions later.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use async_trait::async_trait;
use awa::model::{QueueStorage, QueueStorageConfig};
use awa::{Client, InsertOpts, JobArgs, JobResult, QueueConfig};
use serde::{Deserialize, Serialize};

use outbox_bench_harness::{About, Database, Done, Drain, Message, Seen, System, Tuning};

use crate::pool::pool;

const QUEUE: &str = "bench";
const CONNECTIONS: u32 = 20;
const CHUNK: u64 = 5_000;

pub(super) struct Awa;

#[async_trait(?Send)]
impl System for Awa {
    fn about(&self) -> About {
        About {
            name: "awa",
            version: env!("PEER_AWA"),
            license: "MIT OR Apache-2.0",
            work: "appends a claim and a completion for a batch of rows",
            // Workers are jobs in work at a time, the batch is what a claim takes at most. 512 of each, which is its
            // batch by default, and 5,000 of each are slower; so are four claimers in place of one at this size, and
            // larger batches of completions.
            tuning: Tuning {
                workers: 2_000,
                batch: 2_000,
            },
            filled: "SELECT count(*) FROM awa.ready_entries",
            // Completions in batches, those alone, and those whose partition has been emptied since.
            done: Done::Reached(
                "SELECT (SELECT coalesce(sum(completed_count), 0)::bigint FROM awa.receipt_completion_batches) \
                      + (SELECT count(*) FROM awa.done_entries WHERE state = 'completed') \
                      + (SELECT coalesce(sum(pruned_completed_count), 0)::bigint FROM awa.queue_terminal_rollups)",
            ),
        }
    }

    async fn install(&self, database: &Database) -> Result<()> {
        let pool = pool(database, 2).await?;
        awa::migrations::run(&pool).await?;
        // What the first worker does that starts on a fresh database; but here the messages come before it, and
        // must not be put into the tables that it had before 0.6.
        sqlx08::raw_sql("SELECT awa.storage_auto_finalize_if_fresh('awa')")
            .execute(&pool)
            .await?;
        Ok(())
    }

    /// By its way into the storage that it has since 0.6; what takes jobs for both storages is far slower, and
    /// leaves each of them in a segment of its own.
    async fn fill(&self, database: &Database, rows: u64) -> Result<()> {
        let pool = pool(database, 2).await?;
        let store = QueueStorage::new(QueueStorageConfig::default())?;
        for messages in Message::chunks(rows, CHUNK) {
            let jobs = messages
                .into_iter()
                .map(|message| {
                    let options = InsertOpts {
                        queue: QUEUE.to_owned(),
                        ..InsertOpts::default()
                    };
                    awa::model::insert::params_with(&Bench(message), options)
                })
                .collect::<Result<Vec<_>, _>>()?;
            store.enqueue_params_copy(&pool, &jobs).await?;
        }
        Ok(())
    }

    async fn drain(
        &self,
        database: &Database,
        seen: Arc<Seen>,
        tuning: Tuning,
    ) -> Result<Box<dyn Drain>> {
        let queue = QueueConfig {
            max_workers: tuning.workers,
            claim_batch_size: usize::try_from(tuning.batch)?,
            poll_interval: Duration::from_millis(5),
            // Jobs without a deadline take its shorter path.
            deadline_duration: Duration::ZERO,
            ..QueueConfig::default()
        };
        let client = Client::builder(pool(database, CONNECTIONS).await?)
            .queue(QUEUE, queue)
            .register::<Bench, _, _>(move |message, _| {
                seen.handle(&message.0);
                async { Ok(JobResult::Completed) }
            })
            .build()?;
        Ok(Box::new(Running(client)))
    }
}

/// The message as a type of this crate, for which it can implement the system's trait.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(transparent)]
struct Bench(Message);

impl JobArgs for Bench {
    fn kind() -> &'static str {
        "bench_message"
    }
}

struct Running(Client);

#[async_trait(?Send)]
impl Drain for Running {
    async fn start(&mut self) -> Result<()> {
        Ok(self.0.start().await?)
    }

    async fn stop(self: Box<Self>) -> Result<()> {
        self.0.shutdown(Duration::from_secs(5)).await;
        Ok(())
    }
}
