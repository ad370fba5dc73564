//! A small ledger whose handlers do what a test scripts.

#![allow(dead_code, unreachable_pub, clippy::unwrap_used)]

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use outbox_runtime::backoff::Backoff;
use outbox_runtime::broker::Subscriber;
use outbox_runtime::handler::States;
use outbox_runtime::inbox::{Consumer, ConsumerError, ConsumerOptions};
use outbox_runtime::prelude::*;
use outbox_tests::{Fixture, TestDatabase};
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

typed_id! { pub struct AccountId(String); }

/// Money came in.
#[domain_event(version = 1, name = "money.paid")]
pub struct Paid {
    pub account: AccountId,
    pub cents: i64,
}

/// An account has more.
#[domain_event(version = 1)]
pub struct Credited {
    pub account: AccountId,
    pub balance: i64,
}

/// What somebody owns.
#[aggregate(table = "accounts", type_name = "LedgerAccount", events(Credited))]
pub struct Account {
    id: AccountId,
    balance: i64,
    root: AggregateRoot,
}

impl Account {
    fn credit(&mut self, cents: i64) {
        self.balance += cents;
        let (account, balance) = (self.id.clone(), self.balance);
        self.raise(Credited { account, balance });
    }
}

/// What a handler does at one of its attempts, after it has saved.
#[derive(Debug, Clone)]
pub enum Act {
    Succeed,
    Fail(FailureKind),
    /// Fails for good, with this text.
    FailSaying(String),
    Panic,
    /// Says that it is there, and waits for the semaphore.
    WaitFor(Arc<Semaphore>),
}

#[derive(Debug, thiserror::Error)]
pub enum LedgerError {
    #[error("scripted: {0:?}")]
    Scripted(FailureKind),
    #[error("{0}")]
    Saying(String),
    #[error(transparent)]
    Store(#[from] outbox_runtime::Error),
}

impl Classify for LedgerError {
    fn failure_kind(&self) -> FailureKind {
        match self {
            Self::Scripted(kind) => *kind,
            Self::Saying(_) => FailureKind::Permanent,
            Self::Store(error) => error.failure_kind(),
        }
    }
}

/// The acts of each consumer's coming attempts, and what the attempts saw.
#[derive(Clone, Default)]
pub struct Script {
    acts: Arc<Mutex<HashMap<&'static str, Vec<Act>>>>,
    pub attempts: Arc<Mutex<Vec<Attempt>>>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attempt {
    pub consumer: &'static str,
    pub aggregate_id: String,
    pub sequence: i64,
    pub context: MessageContext,
}

impl Script {
    pub fn set(&self, consumer: &'static str, acts: impl IntoIterator<Item = Act>) {
        let mut acts: Vec<_> = acts.into_iter().collect();
        acts.reverse();
        self.acts.lock().unwrap().insert(consumer, acts);
    }

    pub fn attempts(&self) -> Vec<Attempt> {
        self.attempts.lock().unwrap().clone()
    }

    pub async fn wait_for_attempts(&self, count: usize) {
        eventually(|| self.attempts.lock().unwrap().len() >= count).await;
    }

    async fn play(
        &self,
        consumer: &'static str,
        metadata: &Metadata,
        context: &MessageContext,
    ) -> Result<(), LedgerError> {
        let act = self
            .acts
            .lock()
            .unwrap()
            .get_mut(consumer)
            .and_then(Vec::pop)
            .unwrap_or(Act::Succeed);
        let aggregate = metadata.aggregate.clone().unwrap();
        self.attempts.lock().unwrap().push(Attempt {
            consumer,
            aggregate_id: aggregate.aggregate_id,
            sequence: aggregate.sequence,
            context: context.clone(),
        });
        match act {
            Act::Succeed => Ok(()),
            Act::Fail(kind) => Err(LedgerError::Scripted(kind)),
            Act::FailSaying(text) => Err(LedgerError::Saying(text)),
            Act::Panic => std::panic::panic_any("scripted panic"),
            Act::WaitFor(gate) => {
                gate.acquire().await.unwrap().forget();
                Ok(())
            }
        }
    }
}

pub const CREDIT: &str = "ledger.credit";
pub const BONUS: &str = "ledger.bonus";

#[idempotent_handler(consumer = "ledger.credit", key = "{message_id}")]
async fn credit<DB: Stores<Account>>(
    event: Envelope<Paid>,
    uow: &mut UnitOfWork<'_, DB>,
    State(script): State<Script>,
) -> Result<(), LedgerError> {
    let mut account = uow.get::<Account>(&event.account).await?;
    account.credit(event.cents);
    uow.save(&mut account).await?;
    script.play(CREDIT, &event.metadata, uow.context()).await
}

#[idempotent_handler(consumer = "ledger.bonus", key = "{message_id}")]
async fn bonus<DB: Stores<Account>>(
    event: Envelope<Paid>,
    uow: &mut UnitOfWork<'_, DB>,
    State(script): State<Script>,
) -> Result<(), LedgerError> {
    let mut account = uow.get::<Account>(&event.account).await?;
    account.credit(1);
    uow.save(&mut account).await?;
    script.play(BONUS, &event.metadata, uow.context()).await
}

/// A consumer that runs until it is told to stop.
pub struct Running<DB: Backend> {
    pub consumer: Arc<Consumer<DB>>,
    stop: CancellationToken,
    task: JoinHandle<Result<(), ConsumerError>>,
}

impl<DB: Backend> Running<DB> {
    pub fn start(consumer: Consumer<DB>) -> Self {
        let consumer = Arc::new(consumer);
        let stop = CancellationToken::new();
        let task = tokio::spawn({
            let (consumer, stop) = (Arc::clone(&consumer), stop.clone());
            async move { consumer.run_until(stop.cancelled()).await }
        });
        Self {
            consumer,
            stop,
            task,
        }
    }

    /// Waits until so many messages have had their effect.
    pub async fn wait_for_handled(&self, count: u64) {
        eventually(|| self.consumer.counts().handled >= count).await;
        assert_eq!(self.consumer.counts().handled, count);
    }

    /// Ends at once, as a crash would.
    pub async fn crash(self) {
        self.task.abort();
        let _ = self.task.await;
    }

    pub async fn stop(self) -> Result<(), ConsumerError> {
        self.stop.cancel();
        self.task.await.unwrap()
    }
}

/// Quick retries, so that tests need not wait.
pub fn options() -> ConsumerOptions {
    let backoff = Backoff::new(Duration::from_millis(1), Duration::from_millis(20));
    ConsumerOptions::new()
        .backoff(backoff)
        .poll_interval(Duration::from_millis(50))
}

/// A consumer of the named handlers.
pub fn consumer<DB: TestDatabase>(
    fixture: &Fixture<DB>,
    subscriber: &(impl Subscriber + Clone + 'static),
    script: &Script,
    wanted: &'static [&'static str],
) -> Consumer<DB> {
    let mut states = States::default();
    states.insert(script.clone());
    Consumer::new(fixture.outbox.clone(), subscriber.clone())
        .with_states(states)
        .with_options(options())
        .select_consumers(move |name| wanted.contains(&name))
}

/// Creates the accounts' table and the accounts, each with nothing in it.
pub async fn open_accounts<DB: TestDatabase>(fixture: &Fixture<DB>, ids: &[&str]) {
    fixture
        .run_sql("CREATE TABLE accounts (id text PRIMARY KEY, balance bigint NOT NULL, version bigint NOT NULL)")
        .await;
    for id in ids {
        fixture
            .run_sql(&format!("INSERT INTO accounts VALUES ('{id}', 0, 1)"))
            .await;
    }
}

pub async fn balance<DB: TestDatabase>(fixture: &Fixture<DB>, id: &str) -> i64 {
    fixture
        .number(&format!("SELECT balance FROM accounts WHERE id = '{id}'"))
        .await
}

pub async fn inbox<DB: TestDatabase>(fixture: &Fixture<DB>) -> i64 {
    fixture.number("SELECT count(*) FROM inbox_message").await
}

pub async fn parked<DB: TestDatabase>(fixture: &Fixture<DB>) -> i64 {
    fixture.number("SELECT count(*) FROM inbox_parked").await
}

/// What an operator's tool does to have a dead letter tried again.
pub async fn requeue<DB: TestDatabase>(fixture: &Fixture<DB>, which: &str) {
    let now = if DB::NAME == "SQLite" {
        "CAST(unixepoch('subsec') * 1000 AS INTEGER)"
    } else {
        "clock_timestamp()"
    };
    fixture
        .run_sql(&format!(
            "UPDATE inbox_parked SET state = 'failing', attempts = 0, failing_since = NULL, \
             next_attempt_at = {now} WHERE state = 'dead' AND {which}"
        ))
        .await;
}

pub fn paid(id: &str, cents: i64) -> Paid {
    Paid {
        account: AccountId::from(id.to_owned()),
        cents,
    }
}

/// Waits until the condition holds; far longer than it ever takes.
pub async fn eventually(condition: impl Fn() -> bool) {
    let waiting = async {
        while !condition() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), waiting)
        .await
        .expect("it did not happen");
}
