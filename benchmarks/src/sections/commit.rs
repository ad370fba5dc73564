mod by_hand;
mod ours;

use anyhow::{Result, ensure};
use async_trait::async_trait;
use sqlx::postgres::PgPool;
use sqlx::{AssertSqlSafe, Postgres};

use outbox_runtime::prelude::*;

use self::by_hand::{FiveTrips, ManyEvents, OneStatement, OneStatementManyEvents, Transaction};
use self::ours::LoadChangeCommit;
pub(crate) use self::ours::SaveCommit;
use crate::bench::Bench;
use crate::contest::{Contestant, measure, pair};
use crate::domain::{ACCOUNTS, Account, AccountId};
use crate::line::{Goal, Line};
use crate::load::{Worker, hammer};
use crate::postgres::{Database, script, settle};

/// How many connections work side by side.
const CONNECTIONS: [u16; 3] = [1, 8, 32];

const MANY_EVENTS: usize = 20;

/// Each worker changes accounts of its own, so that what is measured is no queue for a row.
const ACCOUNTS_EACH: i64 = 50;

/// What is in an event, about 100 bytes.
pub(crate) const NOTE: &str = "a deposit at the counter, counted twice, receipt handed over";

pub(crate) async fn run(bench: &Bench) -> Result<Vec<Line>> {
    let database = bench.server.database("commit").await?;
    let mut lines = Vec::new();
    for connections in CONNECTIONS {
        let stage = Stage::new(bench, &database, connections).await?;
        lines.extend(one_event(bench, &stage).await?);
        lines.extend(many_events(bench, &stage).await?);
        lines.push(load_and_commit(bench, &stage).await?);
        stage.pool.close().await;
        // What the pool does for each commit is the same on both sides and hides what they differ in.
        let stage = Stage::without_tests(bench, &database, connections).await?;
        lines.extend(one_event(bench, &stage).await?);
        stage.pool.close().await;
    }
    database.drop().await?;
    Ok(lines)
}

async fn one_event(bench: &Bench, stage: &Stage) -> Result<[Line; 2]> {
    let mut ours = stage.contestant("ours", 1, |stage, accounts| {
        SaveCommit::new(stage.outbox.clone(), accounts, 1)
    });
    let mut transaction = stage.contestant("by hand, a transaction", 1, |stage, accounts| {
        Transaction::new(stage.pool.clone(), accounts)
    });
    let mut statement = stage.contestant("by hand, one statement", 1, |stage, accounts| {
        OneStatement::new(stage.pool.clone(), accounts)
    });
    let samples = measure(bench, &mut [&mut ours, &mut transaction, &mut statement]).await?;
    let [ours, transaction, statement] = firsts(samples)?;
    let name = |beside: &str| stage.name("commit, one event", beside);
    Ok([
        Line::compare(
            name("BEGIN, UPDATE, INSERT, COMMIT"),
            "commits/s",
            Goal::AtLeast(1.6),
            &ours,
            &transaction,
        )
        .at(
            format!("commit{}", stage.about_pool()),
            stage.connections.into(),
        ),
        Line::compare(
            name("the best single statement"),
            "commits/s",
            Goal::AtLeast(0.9),
            &ours,
            &statement,
        ),
    ])
}

async fn many_events(bench: &Bench, stage: &Stage) -> Result<[Line; 2]> {
    let mut ours = stage.contestant("ours, 20 events", MANY_EVENTS, |stage, accounts| {
        SaveCommit::new(stage.outbox.clone(), accounts, MANY_EVENTS)
    });
    let mut transaction = stage.contestant(
        "by hand, a transaction, 20 events",
        MANY_EVENTS,
        |stage, accounts| ManyEvents::new(stage.pool.clone(), accounts),
    );
    let mut statement = stage.contestant(
        "by hand, one statement, 20 events",
        MANY_EVENTS,
        |stage, accounts| OneStatementManyEvents::new(stage.pool.clone(), accounts),
    );
    let samples = measure(bench, &mut [&mut ours, &mut transaction, &mut statement]).await?;
    let [ours, transaction, statement] = firsts(samples)?;
    let line = |beside: &str, theirs| {
        let name = stage.name("commit, 20 events", beside);
        Line::compare(name, "commits/s", Goal::AtLeast(0.95), &ours, theirs)
    };
    Ok([
        line("BEGIN, UPDATE, one multi-row INSERT, COMMIT", &transaction),
        line("one statement with a multi-row INSERT", &statement),
    ])
}

async fn load_and_commit(bench: &Bench, stage: &Stage) -> Result<Line> {
    let mut ours = stage.contestant("ours, load and commit", 1, |stage, accounts| {
        LoadChangeCommit::new(stage.outbox.clone(), accounts)
    });
    let mut theirs = stage.contestant("by hand, load and commit", 1, |stage, accounts| {
        FiveTrips::new(stage.pool.clone(), accounts)
    });
    let (ours, theirs) = pair(bench, &mut ours, &mut theirs).await?;
    Ok(Line::compare(
        stage.name("load, change, commit", "by hand, five round trips"),
        "commits/s",
        Goal::AtLeast(1.5),
        &ours,
        &theirs,
    ))
}

fn firsts<const N: usize>(
    samples: Vec<Vec<crate::contest::Samples>>,
) -> Result<[crate::contest::Samples; N]> {
    let firsts: Vec<_> = samples
        .into_iter()
        .filter_map(|s| s.into_iter().next())
        .collect();
    firsts
        .try_into()
        .map_err(|_| anyhow::anyhow!("a contestant told no figure"))
}

/// Accounts, an outbox and a pool.
pub(crate) struct Stage {
    pub(crate) pool: PgPool,
    outbox: Outbox<Postgres>,
    connections: u16,
    span: std::time::Duration,
}

impl Stage {
    pub(crate) async fn new(bench: &Bench, database: &Database, connections: u16) -> Result<Self> {
        let pool = database.pool(connections.into()).await?;
        Self::on(bench, database, pool, connections).await
    }

    async fn without_tests(bench: &Bench, database: &Database, connections: u16) -> Result<Self> {
        let pool = database.pool_without_tests(connections.into()).await?;
        Self::on(bench, database, pool, connections).await
    }

    async fn on(
        bench: &Bench,
        database: &Database,
        pool: PgPool,
        connections: u16,
    ) -> Result<Self> {
        let outbox = database.outbox(&pool).await?;
        script(&pool, "DROP TABLE IF EXISTS accounts").await?;
        script(&pool, ACCOUNTS).await?;
        Ok(Self {
            pool,
            outbox,
            connections,
            span: bench.span(),
        })
    }

    fn name(&self, what: &str, beside: &str) -> String {
        let (connections, about_pool) = (self.connections, self.about_pool());
        format!("{what}, {connections} connections{about_pool} | {beside}")
    }

    /// What is special about the pool.
    fn about_pool(&self) -> &'static str {
        match self.pool.options().get_test_before_acquire() {
            true => "",
            false => ", test_before_acquire off",
        }
    }

    fn contestant<'s, W: Worker>(
        &'s self,
        name: &str,
        events: usize,
        make: fn(&Stage, Vec<Account>) -> W,
    ) -> Committers<'s, W> {
        Committers {
            name: format!(
                "{name}, {} connections{}",
                self.connections,
                self.about_pool()
            ),
            stage: self,
            events,
            make,
        }
    }

    /// Makes all accounts new and forgets all events.
    pub(crate) async fn reset(&self) -> Result<Vec<Vec<Account>>> {
        script(&self.pool, "TRUNCATE accounts, outbox_message").await?;
        let workers = i64::from(self.connections);
        sqlx::query(
            "INSERT INTO accounts SELECT n, 0, 'somebody', 1 FROM generate_series(1, $1) AS n",
        )
        .bind(workers * ACCOUNTS_EACH)
        .execute(&self.pool)
        .await?;
        script(&self.pool, "ANALYZE accounts").await?;
        settle(&self.pool).await?;
        let account = |id| Account {
            id: AccountId::from(id),
            balance_cents: 0,
            owner: "somebody".to_owned(),
            root: AggregateRoot::at_version(1),
        };
        let of_worker = |worker| {
            let first = worker * ACCOUNTS_EACH + 1;
            (first..first + ACCOUNTS_EACH).map(account).collect()
        };
        Ok((0..workers).map(of_worker).collect())
    }

    /// Each commit changed one account by one cent and has all its events, in their order.
    pub(crate) async fn check(&self, commits: u64, events: usize) -> Result<()> {
        let expected = i64::try_from(commits)?;
        let (versions, cents): (i64, i64) = sqlx::query_as(
            "SELECT (sum(version) - count(*))::bigint, sum(balance_cents)::bigint FROM accounts",
        )
        .fetch_one(&self.pool)
        .await?;
        let events = expected * i64::try_from(events)?;
        ensure!(cents == events, "{cents} cents came in, not {events}");
        ensure!(
            versions >= expected,
            "the versions moved by {versions}, not {expected}"
        );
        let sql = "SELECT count(*), count(*) FILTER (WHERE sequence <> place)
             FROM (SELECT sequence, 1 + row_number() OVER (PARTITION BY aggregate_id ORDER BY id) AS place
                   FROM outbox_message) AS event";
        let (stored, out_of_order): (i64, i64) = sqlx::query_as(AssertSqlSafe(sql))
            .fetch_one(&self.pool)
            .await?;
        ensure!(stored == events, "{stored} events are stored, not {events}");
        ensure!(out_of_order == 0, "{out_of_order} events are out of order");
        Ok(())
    }
}

/// Workers that commit for a time.
struct Committers<'s, W> {
    name: String,
    stage: &'s Stage,
    events: usize,
    make: fn(&Stage, Vec<Account>) -> W,
}

#[async_trait]
impl<W: Worker> Contestant for Committers<'_, W> {
    fn name(&self) -> String {
        self.name.clone()
    }

    async fn run(&mut self) -> Result<Vec<f64>> {
        let accounts = self.stage.reset().await?;
        let workers = accounts.into_iter().map(|own| (self.make)(self.stage, own));
        let done = hammer(workers.collect(), self.stage.span).await?;
        self.stage.check(done.times, self.events).await?;
        Ok(vec![done.per_second()])
    }
}
