use anyhow::{Context as _, Result, ensure};
use async_trait::async_trait;
use outbox_runtime::inbox::{Consumer, ConsumerOptions};
use outbox_runtime::prelude::*;
use sqlx::Postgres;
use tokio::time::Instant;

use super::{Source, Stage, UPDATE};
use crate::contest::Contestant;
use crate::domain::Deposited;

/// The handler's name as a consumer.
const CONSUMER: &str = "bench.on-postgres";

#[idempotent_handler(consumer = "bench.on-postgres", key = "{message_id}")]
async fn deposit(event: Envelope<Deposited>, uow: &mut UnitOfWork<'_, Postgres>) -> Result<()> {
    let aggregate = event.metadata.aggregate.as_ref();
    let done = sqlx::query(UPDATE)
        .bind(event.amount_cents)
        .bind(aggregate.map(|aggregate| aggregate.sequence))
        .bind(event.account_id.as_inner())
        .execute(uow.connection().await?)
        .await?;
    ensure!(done.rows_affected() == 1, "not the next of its account");
    Ok(())
}

/// How many messages a batch has at most.
const BATCH: usize = 100;

/// How the consumer works.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mode {
    /// A transaction a message.
    OneByOne,
    /// Up to [`BATCH`] messages a transaction.
    Batches,
}

/// Our consumer, with first deliveries and then with the same messages again.
pub(super) struct Consumed<'s> {
    stage: &'s Stage,
    mode: Mode,
}

impl<'s> Consumed<'s> {
    pub(super) const fn new(stage: &'s Stage, mode: Mode) -> Self {
        Self { stage, mode }
    }

    fn options(&self) -> ConsumerOptions {
        let at_once = usize::from(self.stage.at_once);
        let options = ConsumerOptions::new().concurrency(at_once);
        match self.mode {
            Mode::OneByOne => options,
            // As many in advance as fill a batch for each that works.
            Mode::Batches => options.batch(BATCH).prefetch((at_once * BATCH).max(256)),
        }
    }
}

#[async_trait]
impl Contestant for Consumed<'_> {
    fn name(&self) -> String {
        format!("handle, {:?}, {} at once", self.mode, self.stage.at_once)
    }

    /// Messages a second; microseconds a message, and a duplicate.
    async fn run(&mut self) -> Result<Vec<f64>> {
        self.stage.reset().await?;
        let outbox = Outbox::new("bench", self.stage.pool.clone());
        let options = self.options();
        let first = consume(
            &outbox,
            CONSUMER,
            options.clone(),
            Source::lasting(self.stage.span),
        );
        let first = first.await?;
        ensure!(first.handled == first.messages, "only {first:?}");
        self.stage.check(first.messages).await?;
        let again = consume(&outbox, CONSUMER, options, Source::of(first.messages)).await?;
        ensure!(again.handled == 0, "effects were repeated: {again:?}");
        self.stage.check(first.messages).await?;
        Ok(vec![first.per_second(), first.micros(), again.micros()])
    }
}

/// What came of some messages.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Consumption {
    pub(crate) messages: u64,
    pub(crate) handled: u64,
    seconds: f64,
}

impl Consumption {
    pub(crate) fn per_second(self) -> f64 {
        self.messages as f64 / self.seconds
    }

    pub(crate) fn micros(self) -> f64 {
        self.seconds * 1e6 / self.messages as f64
    }
}

/// Runs a consumer until all messages of the source are acknowledged.
pub(crate) async fn consume<DB: Backend>(
    outbox: &Outbox<DB>,
    consumer: &'static str,
    options: ConsumerOptions,
    source: Source,
) -> Result<Consumption> {
    let running = Consumer::new(outbox.clone(), source.clone())
        .with_options(options)
        .select_consumers(move |name| name == consumer);
    let began = Instant::now();
    let done = source.clone().done();
    let mut seconds = 0.0;
    let timed = async {
        done.await;
        seconds = began.elapsed().as_secs_f64();
    };
    running.run_until(timed).await.context("the consumer")?;
    let counts = running.counts();
    let messages = source.check()?;
    ensure!(
        counts.handled + counts.duplicates == messages && counts.failed_attempts == 0,
        "of {messages} messages: {counts:?}"
    );
    Ok(Consumption {
        messages,
        handled: counts.handled,
        seconds,
    })
}
