use std::time::Duration;

use anyhow::{Result, ensure};
use async_trait::async_trait;
use outbox_runtime::DomainEvent as _;
use outbox_runtime::inbox::ConsumerOptions;
use outbox_runtime::prelude::*;
use sqlx::Sqlite;
use sqlx::sqlite::SqlitePool;

use super::File;
use crate::bench::Bench;
use crate::contest::{Contestant, pair};
use crate::domain::Deposited;
use crate::line::{Goal, Line};
use crate::load::{Worker, hammer};
use crate::sections::inbox::{ACCOUNT_ROWS, INSERT, Source, UPDATE, consume, message};

pub(super) async fn compare(bench: &Bench) -> Result<Line> {
    let file = File::create().await?;
    let span = bench.span();
    let mut ours = Consumed { file: &file, span };
    let mut theirs = ByHand { file: &file, span };
    let (ours, theirs) = pair(bench, &mut ours, &mut theirs).await?;
    file.remove().await?;
    Ok(Line::compare(
        "SQLite, handle | BEGIN IMMEDIATE, INSERT ON CONFLICT, UPDATE, COMMIT",
        "messages/s",
        Goal::AtLeast(1.0),
        &ours,
        &theirs,
    ))
}

#[idempotent_handler(consumer = "bench.on-sqlite", key = "{message_id}")]
async fn deposit(event: Envelope<Deposited>, uow: &mut UnitOfWork<'_, Sqlite>) -> Result<()> {
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

/// Each message had its effect once.
async fn check(pool: &SqlitePool, messages: u64) -> Result<()> {
    let expected = i64::try_from(messages)?;
    let wrong: i64 = sqlx::query_scalar(
        "SELECT count(*) FROM accounts
         WHERE balance_cents <> version
            OR version <> $1 / $2 + CASE WHEN id < $1 % $2 THEN 1 ELSE 0 END",
    )
    .bind(expected)
    .bind(ACCOUNT_ROWS)
    .fetch_one(pool)
    .await?;
    ensure!(wrong == 0, "{wrong} accounts are wrong");
    let stored: i64 = sqlx::query_scalar("SELECT count(*) FROM inbox_message")
        .fetch_one(pool)
        .await?;
    ensure!(
        stored == expected,
        "the inbox has {stored} messages, not {expected}"
    );
    Ok(())
}

struct Consumed<'s> {
    file: &'s File,
    span: Duration,
}

#[async_trait]
impl Contestant for Consumed<'_> {
    fn name(&self) -> String {
        "SQLite, handle".to_owned()
    }

    async fn run(&mut self) -> Result<Vec<f64>> {
        self.file.reset(0, ACCOUNT_ROWS, 0).await?;
        let options = ConsumerOptions::new();
        let source = Source::lasting(self.span);
        let done = consume(&self.file.outbox, "bench.on-sqlite", options, source).await?;
        ensure!(done.handled == done.messages, "only {done:?}");
        check(&self.file.pool, done.messages).await?;
        Ok(vec![done.per_second()])
    }
}

struct ByHand<'s> {
    file: &'s File,
    span: Duration,
}

#[async_trait]
impl Contestant for ByHand<'_> {
    fn name(&self) -> String {
        "SQLite, handle by hand".to_owned()
    }

    async fn run(&mut self) -> Result<Vec<f64>> {
        self.file.reset(0, ACCOUNT_ROWS, 0).await?;
        let worker = Hand {
            pool: self.file.pool.clone(),
            next: 0,
        };
        let done = hammer(vec![worker], self.span).await?;
        check(&self.file.pool, done.times).await?;
        Ok(vec![done.per_second()])
    }
}

/// BEGIN IMMEDIATE, INSERT ON CONFLICT DO NOTHING, UPDATE, COMMIT. There is one writer at a time,
/// so one worker is as fast as any number.
struct Hand {
    pool: SqlitePool,
    next: u64,
}

impl Worker for Hand {
    async fn once(&mut self) -> Result<()> {
        let message = message(self.next);
        self.next += 1;
        let metadata = &message.metadata;
        let mut transaction = self.pool.begin_with("BEGIN IMMEDIATE").await?;
        let first = sqlx::query(INSERT)
            .bind("bench.by-hand")
            .bind(metadata.message_id.to_string())
            .bind(metadata.message_id.as_uuid())
            .bind(&metadata.event_type)
            .execute(&mut *transaction)
            .await?;
        if first.rows_affected() == 1 {
            let event = Deposited::decode(metadata.schema_version, &message.payload)?;
            let aggregate = metadata.aggregate.as_ref();
            let done = sqlx::query(UPDATE)
                .bind(event.amount_cents)
                .bind(aggregate.map(|aggregate| aggregate.sequence))
                .bind(event.account_id.as_inner())
                .execute(&mut *transaction)
                .await?;
            ensure!(done.rows_affected() == 1, "not the next of its account");
        }
        transaction.commit().await?;
        Ok(())
    }
}
