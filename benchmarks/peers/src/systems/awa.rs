//! awa: appends what was claimed and what was completed, in batches, and drops whole partitions later.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use async_trait::async_trait;
use awa::{Client, InsertOpts, JobArgs, JobResult, QueueConfig, insert_many_copy_from_pool};
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
            tuning: Tuning {
                workers: 512,
                batch: 512,
            },
            filled: "SELECT count(*) FROM awa.ready_entries",
            done: Done::Reached(
                "SELECT (SELECT coalesce(sum(completed_count), 0) FROM awa.receipt_completion_batches)::bigint \
                      + (SELECT count(*) FROM awa.done_entries)",
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

    async fn fill(&self, database: &Database, rows: u64) -> Result<()> {
        let pool = pool(database, 2).await?;
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
            insert_many_copy_from_pool(&pool, &jobs).await?;
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
