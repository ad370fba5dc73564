use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::{Result, ensure};
use async_trait::async_trait;
use outbox_runtime::broker::{PublishError, Publisher};
use outbox_runtime::domain::Message;
use outbox_runtime::prelude::*;
use outbox_runtime::relay::Relay;
use sqlx::Postgres;
use sqlx::postgres::PgPool;
use tokio_util::sync::CancellationToken;

use super::rate::Stamps;
use crate::child::until_shared;
use crate::contest::Contestant;
use crate::domain::{ACCOUNTS, Account, AccountId};
use crate::postgres::{Database, script};
use crate::sections::relay::{start_anew, until_recorded};

/// How the relay learns of a commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wake {
    /// It has an outbox of its own, as in a process of its own: they share nothing but the
    /// database.
    ByNotice,
    /// It has the service's outbox.
    InProcess,
}

/// Commits one change with one event at each beat, of an account of its own.
pub(super) struct CommitToPublish {
    database: Database,
    pool: PgPool,
    span: Duration,
    wake: Wake,
}

impl CommitToPublish {
    pub(super) async fn new(database: &Database, span: Duration, wake: Wake) -> Result<Self> {
        let pool = database.pool(4).await?;
        database.outbox(&pool).await?;
        Ok(Self {
            database: database.clone(),
            pool,
            span,
            wake,
        })
    }

    /// Accounts that are known by the number of their beat.
    async fn reset(&self, accounts: usize) -> Result<()> {
        script(
            &self.pool,
            "DROP TABLE IF EXISTS accounts; TRUNCATE outbox_message RESTART IDENTITY",
        )
        .await?;
        script(&self.pool, ACCOUNTS).await?;
        sqlx::query(
            "INSERT INTO accounts SELECT n, 0, 'somebody', 1 FROM generate_series(0, $1 - 1) AS n",
        )
        .bind(i64::try_from(accounts)?)
        .execute(&self.pool)
        .await?;
        script(&self.pool, "VACUUM ANALYZE accounts").await?;
        start_anew(&self.pool).await
    }

    async fn check(&self, stamps: &Stamps, received: &Received) -> Result<()> {
        let expected = i64::try_from(stamps.count())?;
        let mut connection = self.database.connect().await?;
        until_recorded(&mut connection, u64::try_from(expected)?).await?;
        let changed: i64 = sqlx::query_scalar(
            "SELECT count(*) FROM accounts WHERE version = 2 AND balance_cents = 1",
        )
        .fetch_one(&mut connection)
        .await?;
        ensure!(
            changed == expected,
            "{changed} accounts changed, not {expected}"
        );
        let messages = received.messages.load(Ordering::SeqCst);
        ensure!(
            messages == stamps.count(),
            "{messages} messages were published, not {expected}"
        );
        Ok(())
    }
}

#[async_trait]
impl Contestant for CommitToPublish {
    fn name(&self) -> String {
        match self.wake {
            Wake::ByNotice => "commit to publish, relay elsewhere".to_owned(),
            Wake::InProcess => "commit to publish, relay in the process".to_owned(),
        }
    }

    async fn run(&mut self) -> Result<Vec<f64>> {
        let stamps = Stamps::of(self.span);
        self.reset(stamps.count()).await?;
        let received = Received {
            stamps: stamps.clone(),
            messages: Arc::default(),
        };
        let outbox = Outbox::new("bench", self.pool.clone());
        let pool_elsewhere = self.database.pool(4).await?;
        let relays = match self.wake {
            Wake::ByNotice => Outbox::new("bench", pool_elsewhere.clone()),
            Wake::InProcess => outbox.clone(),
        };
        let relay = Relay::new(relays, received.clone());
        let stop = CancellationToken::new();
        let stopped = stop.clone().cancelled_owned();
        let running = tokio::spawn(async move { relay.run_until(stopped).await });
        until_shared(&mut self.database.connect().await?, 1).await?;
        stamps
            .open_loop(|number| commit(outbox.clone(), stamps.clone(), number))
            .await?;
        let percentiles = stamps.percentiles().await?;
        self.check(&stamps, &received).await?;
        stop.cancel();
        running.await?;
        pool_elsewhere.close().await;
        Ok(percentiles)
    }
}

async fn commit(outbox: Outbox<Postgres>, stamps: Stamps, number: usize) -> Result<()> {
    let mut account = Account {
        id: AccountId::from(i64::try_from(number)?),
        balance_cents: 0,
        owner: "somebody".to_owned(),
        root: AggregateRoot::at_version(1),
    };
    let mut uow = outbox.begin(MessageContext::new()).await?;
    account.deposit(1, "a deposit at the counter");
    uow.save(&mut account).await?;
    stamps.begin(number);
    uow.commit().await?;
    stamps.end(number);
    Ok(())
}

/// A broker that takes everything at once, and looks at the clock.
#[derive(Clone)]
struct Received {
    stamps: Stamps,
    messages: Arc<AtomicUsize>,
}

#[async_trait]
impl Publisher for Received {
    async fn publish(&self, messages: &[Message]) -> Vec<Result<(), PublishError>> {
        for message in messages {
            let aggregate = message.metadata.aggregate.as_ref();
            let number = aggregate.and_then(|aggregate| aggregate.aggregate_id.parse().ok());
            if let Some(number) = number {
                self.stamps.arrive(number);
            }
        }
        self.messages.fetch_add(messages.len(), Ordering::SeqCst);
        messages.iter().map(|_| Ok(())).collect()
    }
}
