use anyhow::{Context as _, Result, ensure};
use sqlx::sqlite::SqlitePool;
use uuid::Uuid;

use crate::domain::{Account, Deposited};
use crate::load::Worker;
use crate::sections::commit::NOTE;

const UPDATE: &str = "UPDATE accounts SET balance_cents = $1, owner = $2, version = $3
    WHERE id = $4 AND version = $5";

const INSERT: &str = "INSERT INTO outbox_message (
        shard, message_id, event_type, schema_version, aggregate_type, aggregate_id, sequence,
        payload, correlation_id, producer
    ) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)";

/// BEGIN IMMEDIATE, UPDATE, INSERT, COMMIT.
pub(super) struct Transaction {
    pool: SqlitePool,
    accounts: Vec<(Account, i64)>,
    turn: usize,
}

impl Transaction {
    pub(super) fn new(pool: SqlitePool, accounts: Vec<Account>) -> Self {
        Self {
            pool,
            accounts: accounts.into_iter().map(|account| (account, 1)).collect(),
            turn: 0,
        }
    }
}

impl Worker for Transaction {
    async fn once(&mut self) -> Result<()> {
        self.turn = (self.turn + 1) % self.accounts.len();
        let found = self.accounts.get_mut(self.turn);
        let (account, version) = found.context("no account")?;
        let before = *version;
        account.balance_cents += 1;
        *version += 1;
        let payload = serde_json::to_string(&Deposited {
            account_id: account.id.clone(),
            amount_cents: 1,
            note: NOTE.to_owned(),
        })?;
        let mut transaction = self.pool.begin_with("BEGIN IMMEDIATE").await?;
        let done = sqlx::query(UPDATE)
            .bind(account.balance_cents)
            .bind(&account.owner)
            .bind(*version)
            .bind(account.id.as_inner())
            .bind(before)
            .execute(&mut *transaction)
            .await?;
        ensure!(done.rows_affected() == 1, "another version");
        let message_id = Uuid::now_v7();
        sqlx::query(INSERT)
            .bind(7_i16)
            .bind(message_id)
            .bind("bench.deposited")
            .bind(1_i32)
            .bind("Account")
            .bind(account.id.to_string())
            .bind(*version)
            .bind(payload)
            .bind(message_id.to_string())
            .bind("bench")
            .execute(&mut *transaction)
            .await?;
        transaction.commit().await?;
        Ok(())
    }
}
