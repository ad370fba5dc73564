use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use fastrand::Rng;
use outbox_runtime::Error;
use outbox_runtime::prelude::*;
use outbox_tests::bank::{Account, BankDb, SCHEMA, id};
use tokio::task::JoinSet;

use crate::dice::{pause, per_mille};

/// A load of units of work.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Load {
    /// Writers end when so many events are committed.
    pub(crate) events: u64,
    /// Tasks that write.
    pub(crate) writers: usize,
    /// Aggregates that they share.
    pub(crate) accounts: usize,
    /// The longest wait before a commit, in microseconds.
    pub(crate) wait: u64,
    /// How long the writer beside them keeps each of its transactions open.
    pub(crate) open_for: Duration,
    /// How long that writer rests in between.
    pub(crate) rest: Duration,
    /// Whether an error of the database is part of the game; its unit may have been committed.
    pub(crate) may_fail: bool,
}

/// What became of the units of work, as the writers know it.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    /// Events that are committed for certain.
    pub(crate) events: AtomicU64,
    pub(crate) committed: AtomicU64,
    pub(crate) rolled_back: AtomicU64,
    pub(crate) conflicts: AtomicU64,
    /// The database failed: committed or not.
    pub(crate) failed: AtomicU64,
    /// Transactions that were open for long.
    pub(crate) long: AtomicU64,
}

/// The account of the writer that stays open.
pub(crate) const SLOW: &str = "slow";

/// A database on which the writers differ.
pub(crate) trait ProofDb: BankDb {
    /// Whether several transactions write at a time, so that a row can wait for its commit beside
    /// others.
    const WRITERS_OVERLAP: bool;
    /// How a message id is written as text.
    const MESSAGE_ID: &str;
    /// Counts sessions that left a transaction open.
    const LEFT_OPEN: &str;
}

impl ProofDb for sqlx::Postgres {
    const WRITERS_OVERLAP: bool = true;
    const MESSAGE_ID: &str = "CAST(message_id AS TEXT)";
    const LEFT_OPEN: &str = "SELECT count(*) FROM pg_stat_activity \
        WHERE datname = current_database() AND state LIKE 'idle in transaction%'";
}

impl ProofDb for sqlx::Sqlite {
    const WRITERS_OVERLAP: bool = false;
    const MESSAGE_ID: &str = "lower(hex(message_id))";
    // A file has no sessions; one that is left open keeps the next writer out.
    const LEFT_OPEN: &str = "SELECT 0";
}

/// Opens the accounts, each with its first event.
pub(crate) async fn open_accounts<DB: BankDb>(outbox: &Outbox<DB>, accounts: usize) {
    DB::run_sql(outbox.pool(), SCHEMA).await;
    let names: Vec<_> = (0..accounts).map(name).chain([SLOW.to_owned()]).collect();
    for some in names.chunks(100) {
        let mut uow = outbox.begin(MessageContext::new()).await.unwrap();
        for name in some {
            uow.add(&mut Account::open(name)).await.unwrap();
        }
        uow.commit().await.unwrap();
    }
}

pub(crate) fn name(account: usize) -> String {
    format!("account-{account:04}")
}

impl Load {
    /// Writes until the events are committed.
    pub(crate) async fn run<DB: ProofDb>(self, outbox: &Outbox<DB>, dice: &mut Rng) -> Arc<Tally> {
        let tally = Arc::new(Tally::default());
        let mut tasks = JoinSet::new();
        for _ in 0..self.writers {
            let writer = Writer {
                load: self,
                outbox: outbox.clone(),
                dice: dice.fork(),
                tally: Arc::clone(&tally),
            };
            tasks.spawn(writer.run());
        }
        let slow = Writer {
            load: self,
            outbox: outbox.clone(),
            dice: dice.fork(),
            tally: Arc::clone(&tally),
        };
        tasks.spawn(slow.run_slowly());
        while tasks.join_next().await.transpose().unwrap().is_some() {}
        tally
    }
}

/// How a unit of work ended.
enum End {
    Committed(u64),
    RolledBack,
}

struct Writer<DB: ProofDb> {
    load: Load,
    outbox: Outbox<DB>,
    dice: Rng,
    tally: Arc<Tally>,
}

impl<DB: ProofDb> Writer<DB> {
    async fn run(mut self) {
        while !self.is_over() {
            let end = match self.dice.u32(0..4) {
                0 | 1 if DB::WRITERS_OVERLAP => self.row_first().await,
                2 => self.with_savepoint().await,
                _ => self.in_one_go().await,
            };
            self.count(end);
        }
    }

    /// Keeps a transaction open with its row in it, again and again.
    async fn run_slowly(mut self) {
        while !self.is_over() {
            let end = self.slow_unit().await;
            self.tally.long.fetch_add(1, Ordering::SeqCst);
            self.count(end);
            tokio::time::sleep(self.load.rest).await;
        }
    }

    /// The ids are taken early and committed late.
    async fn row_first(&mut self) -> Result<End, Error> {
        let failed = |source| Error::Database {
            doing: "working with the test's transaction",
            source,
        };
        let mut transaction = self.outbox.pool().begin().await.map_err(failed)?;
        let mut uow = self
            .outbox
            .join(&mut *transaction, MessageContext::new())
            .await?;
        let events = change(&mut uow, &mut self.dice, self.load.accounts).await?;
        uow.commit().await?;
        self.wait().await;
        if per_mille(&mut self.dice, 100) {
            transaction.rollback().await.map_err(failed)?;
            return Ok(End::RolledBack);
        }
        transaction.commit().await.map_err(failed)?;
        if self.dice.bool() {
            self.outbox.wake();
        }
        Ok(End::Committed(events))
    }

    /// A part of the unit is taken back.
    async fn with_savepoint(&mut self) -> Result<End, Error> {
        let mut uow = self.outbox.begin(MessageContext::new()).await?;
        let savepoint = uow.savepoint().await?;
        change(&mut uow, &mut self.dice, self.load.accounts).await?;
        uow.rollback_to(savepoint).await?;
        let events = change(&mut uow, &mut self.dice, self.load.accounts).await?;
        if DB::WRITERS_OVERLAP {
            self.wait().await;
        }
        self.finish(uow, events).await
    }

    /// One statement on PostgreSQL.
    async fn in_one_go(&mut self) -> Result<End, Error> {
        let mut uow = self.outbox.begin(MessageContext::new()).await?;
        let events = change(&mut uow, &mut self.dice, self.load.accounts).await?;
        self.wait().await;
        self.finish(uow, events).await
    }

    async fn finish(&mut self, uow: UnitOfWork<'_, DB>, events: u64) -> Result<End, Error> {
        if per_mille(&mut self.dice, 100) {
            if self.dice.bool() {
                uow.rollback().await?;
            }
            return Ok(End::RolledBack);
        }
        uow.commit().await?;
        Ok(End::Committed(events))
    }

    async fn slow_unit(&mut self) -> Result<End, Error> {
        let open_for = self.load.open_for;
        if !DB::WRITERS_OVERLAP {
            let mut uow = self.outbox.begin(MessageContext::new()).await?;
            uow.connection().await?;
            deposit(&mut uow, SLOW, 1).await?;
            tokio::time::sleep(open_for).await;
            return self.finish(uow, 1).await;
        }
        let failed = |source| Error::Database {
            doing: "working with the test's transaction",
            source,
        };
        let mut transaction = self.outbox.pool().begin().await.map_err(failed)?;
        let mut uow = self
            .outbox
            .join(&mut *transaction, MessageContext::new())
            .await?;
        deposit(&mut uow, SLOW, 1).await?;
        uow.commit().await?;
        tokio::time::sleep(open_for).await;
        transaction.commit().await.map_err(failed)?;
        Ok(End::Committed(1))
    }

    async fn wait(&mut self) {
        pause(&mut self.dice, self.load.wait).await;
    }

    fn is_over(&self) -> bool {
        self.tally.events.load(Ordering::SeqCst) >= self.load.events
    }

    fn count(&self, end: Result<End, Error>) {
        let counter = match end {
            Ok(End::Committed(events)) => {
                self.tally.events.fetch_add(events, Ordering::SeqCst);
                &self.tally.committed
            }
            Ok(End::RolledBack) => &self.tally.rolled_back,
            Err(error) if error.is_version_conflict() => &self.tally.conflicts,
            Err(Error::Database { .. }) if self.load.may_fail => &self.tally.failed,
            Err(error) => panic!("{error}: {error:?}"),
        };
        counter.fetch_add(1, Ordering::SeqCst);
    }
}

/// Changes some accounts, and says with how many events. Always in the order of their names, so
/// that no two units of the test wait for each other.
pub(crate) async fn change<DB: BankDb>(
    uow: &mut UnitOfWork<'_, DB>,
    dice: &mut Rng,
    accounts: usize,
) -> Result<u64, Error> {
    let names: BTreeSet<_> = (0..dice.usize(1..=3))
        .map(|_| name(dice.usize(0..accounts)))
        .collect();
    let mut events = 0;
    for name in names {
        let times = dice.u64(1..=4);
        deposit(uow, &name, times).await?;
        events += times;
    }
    Ok(events)
}

pub(crate) async fn deposit<DB: BankDb>(
    uow: &mut UnitOfWork<'_, DB>,
    name: &str,
    times: u64,
) -> Result<(), Error> {
    let mut account = uow.get::<Account>(&id(name)).await?;
    for _ in 0..times {
        account.deposit(1);
    }
    uow.save(&mut account).await
}
