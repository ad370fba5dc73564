//! pgmq: reads a batch, which sets its visibility timeout by an UPDATE, and deletes it.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use async_trait::async_trait;
use pgmq::PGMQueueExt;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use outbox_bench_harness::{About, Database, Done, Drain, Message, Seen, System, Tuning};

use crate::pool::pool;

const QUEUE: &str = "bench";
/// For how long others do not see a message that was read; far longer than a batch takes.
const VISIBILITY_SECONDS: i32 = 60;
const CHUNK: u64 = 5_000;

pub(super) struct Pgmq;

#[async_trait(?Send)]
impl System for Pgmq {
    fn about(&self) -> About {
        About {
            name: "pgmq",
            version: env!("PEER_PGMQ"),
            license: "PostgreSQL",
            work: "an UPDATE (visibility timeout) and a DELETE of a row, both with its batch",
            // Workers are tasks that read, hand over and delete. It documents `delete` with many identifiers as
            // the way for throughput; `pop` would delete before a message is handled, and archiving would
            // write every row once more. With 1,000 a batch it takes twice as long.
            tuning: Tuning {
                workers: 2,
                batch: 10_000,
            },
            filled: "SELECT count(*) FROM pgmq.q_bench",
            done: Done::NothingLeft("SELECT msg_id FROM pgmq.q_bench ORDER BY msg_id LIMIT 1"),
        }
    }

    async fn install(&self, database: &Database) -> Result<()> {
        let queue = queue(database, 1).await?;
        queue.install_sql_from_embedded().await?;
        queue.create(QUEUE).await?;
        Ok(())
    }

    async fn fill(&self, database: &Database, rows: u64) -> Result<()> {
        let queue = queue(database, 1).await?;
        for messages in Message::chunks(rows, CHUNK) {
            queue.send_batch(QUEUE, &messages).await?;
        }
        Ok(())
    }

    async fn drain(
        &self,
        database: &Database,
        seen: Arc<Seen>,
        tuning: Tuning,
    ) -> Result<Box<dyn Drain>> {
        Ok(Box::new(Readers {
            reader: Reader {
                queue: Arc::new(queue(database, tuning.workers).await?),
                batch: i32::try_from(tuning.batch)?,
                seen,
                cancel: CancellationToken::new(),
            },
            count: tuning.workers,
            running: Vec::new(),
        }))
    }
}

async fn queue(database: &Database, connections: u32) -> Result<PGMQueueExt> {
    Ok(PGMQueueExt::new_with_pool(pool(database, connections).await?).await)
}

/// It has no worker of its own, so this is the loop of its documentation.
#[derive(Clone)]
struct Reader {
    queue: Arc<PGMQueueExt>,
    batch: i32,
    seen: Arc<Seen>,
    cancel: CancellationToken,
}

impl Reader {
    async fn run(self) -> Result<()> {
        while !self.cancel.is_cancelled() {
            let messages = self
                .queue
                .read_batch::<Message>(QUEUE, VISIBILITY_SECONDS, self.batch)
                .await?;
            if messages.is_empty() {
                tokio::time::sleep(Duration::from_millis(5)).await;
                continue;
            }
            let mut ids = Vec::with_capacity(messages.len());
            for message in &messages {
                self.seen.handle(&message.message);
                ids.push(message.msg_id);
            }
            self.queue.delete_batch(QUEUE, &ids).await?;
        }
        Ok(())
    }
}

struct Readers {
    reader: Reader,
    count: u32,
    running: Vec<JoinHandle<Result<()>>>,
}

#[async_trait(?Send)]
impl Drain for Readers {
    async fn start(&mut self) -> Result<()> {
        for _ in 0..self.count {
            self.running.push(tokio::spawn(self.reader.clone().run()));
        }
        Ok(())
    }

    async fn stop(self: Box<Self>) -> Result<()> {
        self.reader.cancel.cancel();
        for reader in self.running {
            reader.await??;
        }
        Ok(())
    }
}
