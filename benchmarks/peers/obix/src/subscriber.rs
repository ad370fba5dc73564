//! obix: reads the log in pages and stores its position once a batch.

use std::sync::Arc;

use anyhow::{Result, anyhow};
use async_trait::async_trait;
use job::{JobSvcConfig, JobType, Jobs};
use obix::out::Outbox;
use obix::{
    EventCtx, EventDelivery, FlushOp, Handled, InsertOrder, MailboxConfig, OutboxEventJobConfig,
    SingletonSubscriber,
};

use outbox_bench_harness::{About, Database, Done, Drain, Message, Seen, System, Tuning};

use crate::pool::pool;

type BoxError = Box<dyn std::error::Error + Send + Sync>;

const CONNECTIONS: u32 = 10;
const CHUNK: u64 = 5_000;

pub(super) struct Obix;

#[async_trait(?Send)]
impl System for Obix {
    fn about(&self) -> About {
        About {
            name: "obix",
            version: concat!(env!("PEER_OBIX"), " with job ", env!("PEER_JOB")),
            license: "Apache-2.0",
            work: "a checkpoint for a batch of rows, which stay as they are",
            // One subscriber is all there can be. The batch is what it collects before it stores its position,
            // and the page that it reads. Twice as much is no faster, a tenth of it takes 1.7 times as long.
            tuning: Tuning {
                workers: 1,
                batch: 10_000,
            },
            filled: "SELECT count(*) FROM persistent_outbox_events",
            done: Done::Reached(
                "SELECT coalesce(max((execution_state_json->>'sequence')::bigint), 0) FROM job_execution_states",
            ),
        }
    }

    async fn install(&self, database: &Database) -> Result<()> {
        let sql = include_str!(concat!(env!("OUT_DIR"), "/obix.sql"));
        sqlx::raw_sql(sql)
            .execute(&mut database.connect().await?)
            .await?;
        Ok(())
    }

    async fn fill(&self, database: &Database, rows: u64) -> Result<()> {
        let pool = pool(database, CONNECTIONS).await?;
        let outbox = Outbox::<Message>::init(&pool, MailboxConfig::builder().build()).await?;
        for messages in Message::chunks(rows, CHUNK) {
            let mut operation = outbox.begin_op().await?;
            outbox
                .publish_all_persisted(&mut operation, messages)
                .await?;
            operation.commit().await?;
        }
        Ok(())
    }

    async fn drain(
        &self,
        database: &Database,
        seen: Arc<Seen>,
        tuning: Tuning,
    ) -> Result<Box<dyn Drain>> {
        let batch = usize::try_from(tuning.batch)?;
        let pool = pool(database, CONNECTIONS).await?;
        let config = MailboxConfig::builder()
            .backfill_page_size(batch)
            .event_buffer_size(batch)
            .build();
        let outbox = Outbox::<Message>::init(&pool, config).await?;
        let config = JobSvcConfig::builder()
            .pool(pool)
            .build()
            .map_err(|error| anyhow!("{error:?}"))?;
        let mut jobs = Jobs::init(config).await?;
        let subscriber =
            OutboxEventJobConfig::new(JobType::new("bench")).with_max_batch_size(batch);
        outbox
            .register_singleton_subscriber::<_, InsertOrder>(&mut jobs, subscriber, Publish(seen))
            .await?;
        Ok(Box::new(Running {
            jobs,
            _outbox: outbox,
        }))
    }
}

struct Publish(Arc<Seen>);

impl SingletonSubscriber<Message> for Publish {
    type Batch = Vec<Message>;

    /// Collecting is what makes its position durable with every batch. Skipping would be cheaper, but store the
    /// position every few seconds only.
    async fn handle_persistent<'inv>(
        &self,
        context: EventCtx<'inv, Self::Batch>,
        event: &EventDelivery<Message>,
    ) -> Result<Handled<'inv>, BoxError> {
        Ok(match &event.payload {
            Some(message) => context.collect(message.clone()),
            None => context.skip(),
        })
    }

    async fn flush(
        &self,
        _: &mut FlushOp<'_, InsertOrder>,
        messages: Self::Batch,
    ) -> Result<(), BoxError> {
        for message in &messages {
            self.0.handle(message);
        }
        Ok(())
    }
}

struct Running {
    jobs: Jobs,
    _outbox: Outbox<Message>,
}

#[async_trait(?Send)]
impl Drain for Running {
    async fn start(&mut self) -> Result<()> {
        Ok(self.jobs.start_poll().await?)
    }

    async fn stop(self: Box<Self>) -> Result<()> {
        Ok(self.jobs.shutdown().await?)
    }
}
