use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::{Result, ensure};
use async_trait::async_trait;
use outbox_runtime::DomainEvent as _;
use sqlx::postgres::PgPool;

use super::{Stage, message};
use crate::contest::Contestant;
use crate::domain::Deposited;
use crate::load::{Worker, hammer};

/// What makes a message known.
pub(crate) const INSERT: &str =
    "INSERT INTO inbox_message (consumer, idempotency_key, message_id, event_type)
    VALUES ($1, $2, $3, $4) ON CONFLICT (consumer, idempotency_key) DO NOTHING";

/// The UPDATE of both sides. It asks for the message's place among those of its account.
pub(crate) const UPDATE: &str =
    "UPDATE accounts SET balance_cents = balance_cents + $1, version = $2
    WHERE id = $3 AND version = $2 - 1";

/// Workers without any framework that take the same messages in turn.
pub(super) struct ByHand<'s> {
    stage: &'s Stage,
}

impl<'s> ByHand<'s> {
    pub(super) const fn new(stage: &'s Stage) -> Self {
        Self { stage }
    }
}

#[async_trait]
impl Contestant for ByHand<'_> {
    fn name(&self) -> String {
        format!("handle, by hand, {} at once", self.stage.at_once)
    }

    async fn run(&mut self) -> Result<Vec<f64>> {
        self.stage.reset().await?;
        let next = Arc::<AtomicU64>::default();
        let worker = |_| Hand {
            pool: self.stage.pool.clone(),
            next: Arc::clone(&next),
        };
        let workers = (0..self.stage.at_once).map(worker).collect();
        let done = hammer(workers, self.stage.span).await?;
        self.stage.check(done.times).await?;
        Ok(vec![done.per_second()])
    }
}

/// BEGIN, INSERT ON CONFLICT DO NOTHING, UPDATE, COMMIT.
struct Hand {
    pool: PgPool,
    next: Arc<AtomicU64>,
}

impl Worker for Hand {
    async fn once(&mut self) -> Result<()> {
        let message = message(self.next.fetch_add(1, Ordering::SeqCst));
        let metadata = &message.metadata;
        let mut transaction = self.pool.begin().await?;
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
