use anyhow::{Result, ensure};
use sqlx::postgres::{PgConnection, PgPool};
use uuid::Uuid;

use super::{MANY_EVENTS, NOTE};
use crate::domain::{Account, AccountId, Deposited};
use crate::load::Worker;

const UPDATE: &str = "UPDATE accounts SET balance_cents = $1, owner = $2, version = $3
    WHERE id = $4 AND version = $5";

const INSERT: &str = "INSERT INTO outbox_message (
        shard, message_id, event_type, schema_version, aggregate_type, aggregate_id, sequence,
        payload, correlation_id, producer
    ) VALUES ($1, $2, $3, $4, $5, $6, $7, $8::text::json, $9, $10)";

const BOTH: &str = "WITH changed AS (
        UPDATE accounts SET balance_cents = $1, owner = $2, version = $3
        WHERE id = $4 AND version = $5
        RETURNING 1
    )
    INSERT INTO outbox_message (
        shard, message_id, event_type, schema_version, aggregate_type, aggregate_id, sequence,
        payload, correlation_id, producer
    ) SELECT $6, $7, $8, $9, $10, $11, $12, $13::text::json, $14, $15 FROM changed";

const INSERT_MANY: &str = "INSERT INTO outbox_message (
        shard, message_id, event_type, schema_version, aggregate_type, aggregate_id, sequence,
        payload, correlation_id, producer
    ) SELECT $1, message_id, $2, $3, $4, $5, sequence, payload::json, $6, $7
    FROM unnest($8::uuid[], $9::bigint[], $10::text[]) AS event (message_id, sequence, payload)";

const BOTH_MANY: &str = "WITH changed AS (
        UPDATE accounts SET balance_cents = $11, owner = $12, version = $13
        WHERE id = $14 AND version = $15
        RETURNING 1
    )
    INSERT INTO outbox_message (
        shard, message_id, event_type, schema_version, aggregate_type, aggregate_id, sequence,
        payload, correlation_id, producer
    ) SELECT $1, message_id, $2, $3, $4, $5, sequence, payload::json, $6, $7
    FROM changed, unnest($8::uuid[], $9::bigint[], $10::text[]) AS event (message_id, sequence, payload)";

const EVENT: &str = "bench.deposited";
const AGGREGATE: &str = "Account";
const SERVICE: &str = "bench";
/// The shard makes no difference to what is measured.
const SHARD: i16 = 7;

/// A row as a program without any framework holds it.
struct Row {
    id: i64,
    balance_cents: i64,
    owner: String,
    version: i64,
}

impl Row {
    /// The next version, with so many cents more.
    fn change(&mut self, cents: i64, versions: i64) {
        self.balance_cents += cents;
        self.version += versions;
    }

    fn event(&self) -> Result<String> {
        Ok(serde_json::to_string(&Deposited {
            account_id: AccountId::from(self.id),
            amount_cents: 1,
            note: NOTE.to_owned(),
        })?)
    }

    async fn update(&self, before: i64, connection: &mut PgConnection) -> Result<()> {
        let done = sqlx::query(UPDATE)
            .bind(self.balance_cents)
            .bind(&self.owner)
            .bind(self.version)
            .bind(self.id)
            .bind(before)
            .execute(connection)
            .await?;
        ensure!(done.rows_affected() == 1, "another version");
        Ok(())
    }

    async fn insert(&self, connection: &mut PgConnection) -> Result<()> {
        let message_id = Uuid::now_v7();
        sqlx::query(INSERT)
            .bind(SHARD)
            .bind(message_id)
            .bind(EVENT)
            .bind(1_i32)
            .bind(AGGREGATE)
            .bind(self.id.to_string())
            .bind(self.version)
            .bind(self.event()?)
            .bind(message_id.to_string())
            .bind(SERVICE)
            .execute(connection)
            .await?;
        Ok(())
    }
}

/// The accounts of one worker, in turn.
struct Turns {
    pool: PgPool,
    rows: Vec<Row>,
    turn: usize,
}

impl Turns {
    fn new(pool: PgPool, accounts: Vec<Account>) -> Self {
        let row = |account: Account| Row {
            id: account.id.into_inner(),
            balance_cents: account.balance_cents,
            owner: account.owner,
            version: 1,
        };
        Self {
            pool,
            rows: accounts.into_iter().map(row).collect(),
            turn: 0,
        }
    }

    fn next(&mut self) -> Result<(&PgPool, &mut Row)> {
        self.turn = (self.turn + 1) % self.rows.len();
        let row = self.rows.get_mut(self.turn);
        Ok((
            &self.pool,
            row.ok_or_else(|| anyhow::anyhow!("no account"))?,
        ))
    }
}

/// BEGIN, UPDATE, INSERT, COMMIT.
pub(super) struct Transaction(Turns);

impl Transaction {
    pub(super) fn new(pool: PgPool, accounts: Vec<Account>) -> Self {
        Self(Turns::new(pool, accounts))
    }
}

impl Worker for Transaction {
    async fn once(&mut self) -> Result<()> {
        let (pool, row) = self.0.next()?;
        let before = row.version;
        row.change(1, 1);
        let mut transaction = pool.begin().await?;
        row.update(before, &mut transaction).await?;
        row.insert(&mut transaction).await?;
        transaction.commit().await?;
        Ok(())
    }
}

/// BEGIN, SELECT, UPDATE, INSERT, COMMIT.
pub(super) struct FiveTrips(Turns);

impl FiveTrips {
    pub(super) fn new(pool: PgPool, accounts: Vec<Account>) -> Self {
        Self(Turns::new(pool, accounts))
    }
}

impl Worker for FiveTrips {
    async fn once(&mut self) -> Result<()> {
        let (pool, row) = self.0.next()?;
        let mut transaction = pool.begin().await?;
        let (balance_cents, owner, version) =
            sqlx::query_as("SELECT balance_cents, owner, version FROM accounts WHERE id = $1")
                .bind(row.id)
                .fetch_one(&mut *transaction)
                .await?;
        (row.balance_cents, row.owner, row.version) = (balance_cents, owner, version);
        row.change(1, 1);
        row.update(version, &mut transaction).await?;
        row.insert(&mut transaction).await?;
        transaction.commit().await?;
        Ok(())
    }
}

/// All in one statement, which is a transaction by itself.
pub(super) struct OneStatement(Turns);

impl OneStatement {
    pub(super) fn new(pool: PgPool, accounts: Vec<Account>) -> Self {
        Self(Turns::new(pool, accounts))
    }
}

impl Worker for OneStatement {
    async fn once(&mut self) -> Result<()> {
        let (pool, row) = self.0.next()?;
        let before = row.version;
        row.change(1, 1);
        let message_id = Uuid::now_v7();
        let done = sqlx::query(BOTH)
            .bind(row.balance_cents)
            .bind(&row.owner)
            .bind(row.version)
            .bind(row.id)
            .bind(before)
            .bind(SHARD)
            .bind(message_id)
            .bind(EVENT)
            .bind(1_i32)
            .bind(AGGREGATE)
            .bind(row.id.to_string())
            .bind(row.version)
            .bind(row.event()?)
            .bind(message_id.to_string())
            .bind(SERVICE)
            .execute(pool)
            .await?;
        ensure!(done.rows_affected() == 1, "another version");
        Ok(())
    }
}

/// What many events of one change have in columns of their own.
struct Columns {
    ids: Vec<Uuid>,
    sequences: Vec<i64>,
    payloads: Vec<String>,
}

impl Columns {
    fn of(row: &Row, before: i64) -> Result<Self> {
        let events = before + 1..=row.version;
        Ok(Self {
            ids: events.clone().map(|_| Uuid::now_v7()).collect(),
            payloads: events.clone().map(|_| row.event()).collect::<Result<_>>()?,
            sequences: events.collect(),
        })
    }

    fn bind(self, sql: &'static str, row: &Row) -> PgQuery {
        let correlation = self.ids.first().map(Uuid::to_string);
        sqlx::query(sql)
            .bind(SHARD)
            .bind(EVENT)
            .bind(1_i32)
            .bind(AGGREGATE)
            .bind(row.id.to_string())
            .bind(correlation)
            .bind(SERVICE)
            .bind(self.ids)
            .bind(self.sequences)
            .bind(self.payloads)
    }
}

type PgQuery = sqlx::query::Query<'static, sqlx::Postgres, sqlx::postgres::PgArguments>;

/// BEGIN, UPDATE, one INSERT of many rows, COMMIT.
pub(super) struct ManyEvents(Turns);

impl ManyEvents {
    pub(super) fn new(pool: PgPool, accounts: Vec<Account>) -> Self {
        Self(Turns::new(pool, accounts))
    }
}

impl Worker for ManyEvents {
    async fn once(&mut self) -> Result<()> {
        let (pool, row) = self.0.next()?;
        let (before, events) = (row.version, i64::try_from(MANY_EVENTS)?);
        row.change(events, events);
        let mut transaction = pool.begin().await?;
        row.update(before, &mut transaction).await?;
        let insert = Columns::of(row, before)?.bind(INSERT_MANY, row);
        insert.execute(&mut *transaction).await?;
        transaction.commit().await?;
        Ok(())
    }
}

/// The same in one statement.
pub(super) struct OneStatementManyEvents(Turns);

impl OneStatementManyEvents {
    pub(super) fn new(pool: PgPool, accounts: Vec<Account>) -> Self {
        Self(Turns::new(pool, accounts))
    }
}

impl Worker for OneStatementManyEvents {
    async fn once(&mut self) -> Result<()> {
        let (pool, row) = self.0.next()?;
        let (before, events) = (row.version, i64::try_from(MANY_EVENTS)?);
        row.change(events, events);
        let done = Columns::of(row, before)?
            .bind(BOTH_MANY, row)
            .bind(row.balance_cents)
            .bind(row.owner.clone())
            .bind(row.version)
            .bind(row.id)
            .bind(before)
            .execute(pool)
            .await?;
        ensure!(
            done.rows_affected() == u64::try_from(MANY_EVENTS)?,
            "another version"
        );
        Ok(())
    }
}
