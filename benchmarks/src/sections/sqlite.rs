mod by_hand;
mod drain;
mod handle;

use std::time::Duration;

use anyhow::{Result, ensure};
use async_trait::async_trait;
use outbox_runtime::prelude::*;
use sqlx::Sqlite;
use sqlx::sqlite::{
    SqliteConnectOptions, SqliteJournalMode, SqlitePool, SqlitePoolOptions, SqliteSynchronous,
};
use tempfile::TempDir;

use self::by_hand::Transaction;
use crate::bench::Bench;
use crate::contest::{Contestant, pair};
use crate::domain::{ACCOUNTS, Account, AccountId};
use crate::line::{Goal, Line};
use crate::load::{Worker, hammer};
use crate::sections::commit::SaveCommit;

/// So many accounts a commit goes through in turn.
const OWN_ACCOUNTS: i64 = 50;

pub(crate) async fn run(bench: &Bench) -> Result<Vec<Line>> {
    Ok(vec![
        commit(bench).await?,
        drain::compare(bench).await?,
        handle::compare(bench).await?,
    ])
}

async fn commit(bench: &Bench) -> Result<Line> {
    let file = File::create().await?;
    let mut ours = Committer {
        name: "SQLite, commit",
        file: &file,
        span: bench.span(),
        make: |file, accounts| SaveCommit::new(file.outbox.clone(), accounts, 1),
    };
    let mut theirs = Committer {
        name: "SQLite, commit by hand",
        file: &file,
        span: bench.span(),
        make: |file, accounts| Transaction::new(file.pool.clone(), accounts),
    };
    let (ours, theirs) = pair(bench, &mut ours, &mut theirs).await?;
    file.remove().await?;
    Ok(Line::compare(
        "SQLite, commit | BEGIN IMMEDIATE, UPDATE, INSERT, COMMIT",
        "commits/s",
        Goal::AtLeast(1.0),
        &ours,
        &theirs,
    ))
}

/// A database on disk, set up as the book says.
struct File {
    pool: SqlitePool,
    outbox: Outbox<Sqlite>,
    folder: TempDir,
}

impl File {
    async fn create() -> Result<Self> {
        // Not where temporary files go: that may be memory.
        let folder = TempDir::with_prefix_in("outbox-bench-", std::env::current_dir()?)?;
        let options = SqliteConnectOptions::new()
            .filename(folder.path().join("bench.db"))
            .create_if_missing(true)
            .journal_mode(SqliteJournalMode::Wal)
            .synchronous(SqliteSynchronous::Full);
        let pool = SqlitePoolOptions::new()
            .max_connections(8)
            .connect_with(options)
            .await?;
        let outbox = Outbox::new("bench", pool.clone());
        outbox.migrate().await?;
        Ok(Self {
            pool,
            outbox,
            folder,
        })
    }

    /// Runs several statements without parameters.
    async fn script(&self, sql: &'static str) -> Result<()> {
        sqlx::raw_sql(sql).execute(&self.pool).await?;
        Ok(())
    }

    /// Makes so many accounts new, in that version, and forgets all messages.
    async fn reset(&self, first: i64, accounts: i64, version: i64) -> Result<()> {
        self.script(
            "DROP TABLE IF EXISTS accounts;
             DELETE FROM outbox_message; DELETE FROM inbox_message",
        )
        .await?;
        self.script(ACCOUNTS).await?;
        sqlx::query(
            "WITH RECURSIVE numbers (n) AS (SELECT $1 UNION ALL SELECT n + 1 FROM numbers WHERE n < $1 + $2 - 1)
             INSERT INTO accounts SELECT n, 0, 'somebody', $3 FROM numbers",
        )
        .bind(first)
        .bind(accounts)
        .bind(version)
        .execute(&self.pool)
        .await?;
        self.settle().await
    }

    /// Takes what earlier work wrote out of the write-ahead log.
    async fn settle(&self) -> Result<()> {
        self.script("PRAGMA wal_checkpoint(TRUNCATE)").await
    }

    async fn remove(self) -> Result<()> {
        self.pool.close().await;
        self.folder.close()?;
        Ok(())
    }
}

/// One who commits for a time.
struct Committer<'s, W> {
    name: &'static str,
    file: &'s File,
    span: Duration,
    make: fn(&File, Vec<Account>) -> W,
}

impl<W> Committer<'_, W> {
    /// Each commit changed one account by one cent and has its event, in order.
    async fn check(&self, commits: u64) -> Result<()> {
        let expected = i64::try_from(commits)?;
        let (cents, versions): (i64, i64) =
            sqlx::query_as("SELECT sum(balance_cents), sum(version) - count(*) FROM accounts")
                .fetch_one(&self.file.pool)
                .await?;
        ensure!(
            (cents, versions) == (expected, expected),
            "{cents} cents came in and versions moved by {versions}, not {expected}"
        );
        let (events, out_of_order): (i64, i64) = sqlx::query_as(
            "SELECT count(*), count(*) FILTER (WHERE sequence <> place)
             FROM (SELECT sequence, 1 + row_number() OVER (PARTITION BY aggregate_id ORDER BY id) AS place
                   FROM outbox_message)",
        )
        .fetch_one(&self.file.pool)
        .await?;
        ensure!(
            events == expected,
            "{events} events are stored, not {expected}"
        );
        ensure!(out_of_order == 0, "{out_of_order} events are out of order");
        Ok(())
    }
}

#[async_trait]
impl<W: Worker> Contestant for Committer<'_, W> {
    fn name(&self) -> String {
        self.name.to_owned()
    }

    async fn run(&mut self) -> Result<Vec<f64>> {
        self.file.reset(1, OWN_ACCOUNTS, 1).await?;
        let account = |id| Account {
            id: AccountId::from(id),
            balance_cents: 0,
            owner: "somebody".to_owned(),
            root: AggregateRoot::at_version(1),
        };
        let worker = (self.make)(self.file, (1..=OWN_ACCOUNTS).map(account).collect());
        let done = hammer(vec![worker], self.span).await?;
        self.check(done.times).await?;
        Ok(vec![done.per_second()])
    }
}
