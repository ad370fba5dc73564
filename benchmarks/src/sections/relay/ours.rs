use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

use anyhow::{Result, ensure};
use async_trait::async_trait;
use outbox_runtime::broker::{PublishError, Publisher};
use outbox_runtime::domain::Message;
use outbox_runtime::relay::Relay;
use sqlx::postgres::{PgConnection, PgPool};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::AGGREGATES;
use crate::contest::Contestant;
use crate::postgres::{Database, script};

/// How often the positions are looked at while the relay works.
const LOOK: Duration = Duration::from_millis(10);

/// Our relay on a backlog, with its default options, until its positions are behind the last row.
pub(crate) struct Drain {
    database: Database,
    pool: PgPool,
    rows: i64,
}

impl Drain {
    pub(crate) async fn new(database: Database, rows: i64) -> Result<Self> {
        Ok(Self {
            pool: database.pool(4).await?,
            database,
            rows,
        })
    }
}

#[async_trait]
impl Contestant for Drain {
    fn name(&self) -> String {
        format!("our relay, {} rows", self.rows)
    }

    async fn run(&mut self) -> Result<Vec<f64>> {
        start_anew(&self.pool).await?;
        let mut connection = self.database.connect().await?;
        let nowhere = Nowhere::new();
        let outbox = self.database.outbox(&self.pool).await?;
        let relay = Relay::new(outbox, nowhere.clone());
        let stop = CancellationToken::new();
        let began = Instant::now();
        let stopped = stop.clone().cancelled_owned();
        let running = tokio::spawn(async move { relay.run_until(stopped).await });
        until_settled(&mut connection, self.rows).await?;
        let took = began.elapsed();
        stop.cancel();
        running.await?;
        nowhere.check(self.rows)?;
        Ok(vec![self.rows as f64 / took.as_secs_f64()])
    }
}

/// Has the next relay begin at the beginning.
pub(crate) async fn start_anew(pool: &PgPool) -> Result<()> {
    script(
        pool,
        "UPDATE outbox_shard SET position = 0, owner = NULL, lease_until = NULL;
         TRUNCATE outbox_journal, outbox_relay",
    )
    .await?;
    script(pool, "VACUUM outbox_shard").await?;
    script(pool, "CHECKPOINT").await
}

/// Waits until the stored positions of all shards are at the last of so many rows.
pub(crate) async fn until_settled(connection: &mut PgConnection, last: i64) -> Result<()> {
    loop {
        let lowest: i64 = sqlx::query_scalar("SELECT min(position) FROM outbox_shard")
            .fetch_one(&mut *connection)
            .await?;
        if lowest >= last {
            return Ok(());
        }
        tokio::time::sleep(LOOK).await;
    }
}

/// Waits until so many messages are written down as published.
///
/// Where only some shards have messages, this is earlier than [`until_settled`]: the positions of
/// the others follow when there is time.
pub(crate) async fn until_recorded(connection: &mut PgConnection, messages: u64) -> Result<()> {
    let messages = i64::try_from(messages)?;
    loop {
        let recorded: i64 =
            sqlx::query_scalar("SELECT coalesce(sum(messages), 0)::bigint FROM outbox_journal")
                .fetch_one(&mut *connection)
                .await?;
        ensure!(
            recorded <= messages,
            "{recorded} messages were published, not {messages}"
        );
        if recorded == messages {
            return Ok(());
        }
        tokio::time::sleep(LOOK).await;
    }
}

/// A broker that takes everything at once, and looks at the order of each aggregate.
#[derive(Clone)]
pub(crate) struct Nowhere(Arc<Seen>);

struct Seen {
    messages: AtomicU64,
    out_of_order: AtomicU64,
    /// The last sequence of each aggregate.
    latest: Vec<AtomicI64>,
}

impl Nowhere {
    pub(crate) fn new() -> Self {
        Self::from_sequence(1)
    }

    /// One to whom each aggregate's first message has that sequence.
    pub(crate) fn from_sequence(first: i64) -> Self {
        let none = first - 1;
        Self(Arc::new(Seen {
            messages: AtomicU64::new(0),
            out_of_order: AtomicU64::new(0),
            latest: (0..AGGREGATES).map(|_| AtomicI64::new(none)).collect(),
        }))
    }

    /// How many messages came, and how many of them out of order.
    pub(crate) fn counts(&self) -> (u64, u64) {
        (
            self.0.messages.load(Ordering::SeqCst),
            self.0.out_of_order.load(Ordering::SeqCst),
        )
    }

    /// Fails unless just so many messages came, each aggregate's in order.
    pub(crate) fn check(&self, messages: i64) -> Result<()> {
        let (seen, out_of_order) = self.counts();
        ensure!(
            seen == u64::try_from(messages)?,
            "{seen} messages were published, not {messages}"
        );
        ensure!(
            out_of_order == 0,
            "{out_of_order} messages were out of order"
        );
        Ok(())
    }
}

#[async_trait]
impl Publisher for Nowhere {
    async fn publish(&self, messages: &[Message]) -> Vec<Result<(), PublishError>> {
        for message in messages {
            let aggregate = message.metadata.aggregate.as_ref();
            let in_order = aggregate.is_some_and(|aggregate| {
                let place = aggregate.aggregate_id.parse().ok();
                let latest = place.and_then(|place: usize| self.0.latest.get(place));
                let sequence = aggregate.sequence;
                latest.is_some_and(|latest| latest.swap(sequence, Ordering::SeqCst) == sequence - 1)
            });
            if !in_order {
                self.0.out_of_order.fetch_add(1, Ordering::SeqCst);
            }
        }
        let count = u64::try_from(messages.len()).unwrap_or(u64::MAX);
        self.0.messages.fetch_add(count, Ordering::SeqCst);
        messages.iter().map(|_| Ok(())).collect()
    }
}
