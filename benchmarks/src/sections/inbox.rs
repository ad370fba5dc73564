mod by_hand;
mod ours;
mod source;

use anyhow::{Result, anyhow, ensure};
use sqlx::postgres::PgPool;

use self::by_hand::ByHand;
pub(crate) use self::by_hand::{INSERT, UPDATE};
pub(crate) use self::ours::consume;
use self::ours::{Consumed, Mode};
pub(crate) use self::source::{Source, message};
use crate::bench::Bench;
use crate::contest::{Samples, measure};
use crate::domain::ACCOUNTS;
use crate::line::{Goal, Line};
use crate::postgres::{Database, script, settle};

/// How many messages are handled at a time.
const AT_ONCE: [u16; 3] = [1, 8, 32];

/// The messages are about so many accounts, in turn.
pub(crate) const ACCOUNT_ROWS: i64 = 10_000;

pub(crate) async fn run(bench: &Bench) -> Result<Vec<Line>> {
    let database = bench.server.database("inbox").await?;
    let mut lines = Vec::new();
    for at_once in AT_ONCE {
        lines.extend(handled(bench, &database, at_once).await?);
    }
    database.drop().await?;
    Ok(lines)
}

async fn handled(bench: &Bench, database: &Database, at_once: u16) -> Result<Vec<Line>> {
    let stage = Stage::new(bench, database, at_once).await?;
    let mut ours = Consumed::new(&stage, Mode::OneByOne);
    let mut batches = Consumed::new(&stage, Mode::Batches);
    let mut theirs = ByHand::new(&stage);
    let samples = measure(bench, &mut [&mut ours, &mut batches, &mut theirs]).await?;
    stage.pool.close().await;
    let [ours, batches, theirs] = samples.as_slice() else {
        return Err(anyhow!("a contestant told no figure"));
    };
    let figure = |figures: &[Samples], index| figures.get(index).cloned().unwrap_or_default();
    let beside = |how: &str, goal, ours: &[Samples]| {
        Line::compare(
            format!("handle{how}, {at_once} at once | BEGIN, INSERT ON CONFLICT, UPDATE, COMMIT"),
            "messages/s",
            Goal::AtLeast(goal),
            &figure(ours, 0),
            &figure(theirs, 0),
        )
    };
    let mut lines = vec![
        beside("", 1.0, ours).at("handle", at_once.into()),
        beside(" in batches", 5.0, batches).at("handle in batches", at_once.into()),
    ];
    if at_once < 32 {
        lines.push(Line::compare(
            format!("a duplicate, {at_once} at once | a first delivery"),
            "us",
            Goal::AtMost(0.3),
            &figure(ours, 2),
            &figure(ours, 1),
        ));
    }
    Ok(lines)
}

/// Accounts, an inbox, and a pool.
pub(crate) struct Stage {
    pool: PgPool,
    at_once: u16,
    span: std::time::Duration,
}

impl Stage {
    async fn new(bench: &Bench, database: &Database, at_once: u16) -> Result<Self> {
        // One more than work, for what a consumer looks at beside.
        let pool = database.pool(u32::from(at_once) + 1).await?;
        database.outbox(&pool).await?;
        Ok(Self {
            pool,
            at_once,
            span: bench.span(),
        })
    }

    /// Makes all accounts new and forgets all messages.
    async fn reset(&self) -> Result<()> {
        script(
            &self.pool,
            "TRUNCATE inbox_message; DROP TABLE IF EXISTS accounts",
        )
        .await?;
        script(&self.pool, ACCOUNTS).await?;
        sqlx::query(
            "INSERT INTO accounts SELECT n, 0, 'somebody', 0 FROM generate_series(0, $1 - 1) AS n",
        )
        .bind(ACCOUNT_ROWS)
        .execute(&self.pool)
        .await?;
        script(&self.pool, "VACUUM ANALYZE accounts").await?;
        settle(&self.pool).await
    }

    /// Each message had its effect once: one cent and one version for its account. That each was
    /// the next of its account is what the statement that has the effect asks for.
    async fn check(&self, messages: u64) -> Result<()> {
        let expected = i64::try_from(messages)?;
        let wrong: i64 = sqlx::query_scalar(
            "SELECT count(*) FROM accounts
             WHERE balance_cents <> version
                OR version <> $1 / $2 + CASE WHEN id < $1 % $2 THEN 1 ELSE 0 END",
        )
        .bind(expected)
        .bind(ACCOUNT_ROWS)
        .fetch_one(&self.pool)
        .await?;
        ensure!(wrong == 0, "{wrong} accounts are wrong");
        let stored: i64 = sqlx::query_scalar("SELECT count(*) FROM inbox_message")
            .fetch_one(&self.pool)
            .await?;
        ensure!(
            stored == expected,
            "the inbox has {stored} messages, not {expected}"
        );
        Ok(())
    }
}
