use async_trait::async_trait;
use outbox_runtime::Metadata;
use sqlx::Pool;

use super::arena::{Arena, Needs, NotExercised};
use crate::Fixture;
use crate::bank::BankDb;

/// The tables of the workers, but for the identity column, which differs.
const SCHEMA: &str = "
    CREATE TABLE account (id TEXT PRIMARY KEY, cents BIGINT NOT NULL, version BIGINT NOT NULL);
    CREATE TABLE ledger (id TEXT PRIMARY KEY, entries BIGINT NOT NULL, version BIGINT NOT NULL);
    CREATE TABLE poison (account TEXT PRIMARY KEY);
    CREATE TABLE control (writing BIGINT NOT NULL, most_behind BIGINT NOT NULL);
    INSERT INTO control VALUES (1, 400);";

/// A database that can be made to suffer.
#[async_trait]
pub trait FaultDb: BankDb {
    /// Its name on the command line.
    const KEY: &'static str;
    /// A message id as hexadecimal digits, in a query on the outbox.
    const MESSAGE_ID: &'static str;
    /// The identity column of the table of effects: ids grow in the order of insertion.
    const EFFECT_ID: &'static str;
    /// Whether there are no connections that could be cut, so that the processes have to be told to
    /// lose the answers to their statements.
    const LOSES_ANSWERS_BY_FAULT_POINTS: bool;

    /// Whether a relay has a connection that listens for notices.
    const LISTENS: bool;
    /// A query for the time of the newest event, in seconds since 1970.
    const NEWEST_AT: &'static str;

    /// A database of one run, with the workers' tables in it, and what makes it suffer.
    async fn arena(needs: Needs) -> Result<Arena<Self>, NotExercised>;

    /// A pool as a worker's.
    async fn open(url: &str) -> Result<Pool<Self>, sqlx::Error>;

    /// The one number that a query answers.
    async fn try_number(pool: &Pool<Self>, sql: &str) -> Result<i64, sqlx::Error>;

    /// Runs SQL; several statements are allowed.
    async fn try_run(pool: &Pool<Self>, sql: &str) -> Result<(), sqlx::Error>;

    /// Writes a handler's effect.
    async fn record(
        connection: &mut Self::Connection,
        consumer: &str,
        metadata: &Metadata,
    ) -> Result<(), sqlx::Error>;

    /// Whether handlers are to fail with an account.
    async fn is_poisoned(
        connection: &mut Self::Connection,
        account: &str,
    ) -> Result<bool, sqlx::Error>;

    /// Takes an inbox row away, as no handler should.
    async fn forget(
        connection: &mut Self::Connection,
        consumer: &str,
        metadata: &Metadata,
    ) -> Result<(), sqlx::Error>;

    /// Puts so many old rows into the log, all of them finished.
    async fn fill(fixture: &Fixture<Self>, rows: i64);

    /// Lets a connection keep seeing the database as it is now.
    async fn hold_snapshot(connection: &mut Self::Connection) -> Result<(), sqlx::Error>;

    /// What a worker needs in its environment to go by the clock that is the database's.
    fn clock_of_workers(arena: &Arena<Self>) -> Vec<(String, String)>;

    /// Takes the database away for some seconds.
    async fn strike_down(arena: &mut Arena<Self>);

    /// Cuts all connections but those of the test itself; says how many.
    async fn cut(arena: &Arena<Self>) -> i64;

    /// Cuts the connections that listen for notices; says how many.
    async fn cut_listeners(arena: &Arena<Self>) -> i64;
}

/// The SQL that makes the workers' tables.
pub(super) fn schema<DB: FaultDb>() -> String {
    format!(
        "{SCHEMA} CREATE TABLE effect (id {}, consumer TEXT NOT NULL, message_id TEXT NOT NULL,
            aggregate_id TEXT NOT NULL, sequence BIGINT NOT NULL);
         CREATE INDEX effect_by_message ON effect (message_id);",
        DB::EFFECT_ID
    )
}

/// What a handler writes, with the same placeholders on both databases.
pub(super) const RECORD: &str =
    "INSERT INTO effect (consumer, message_id, aggregate_id, sequence) VALUES ($1, $2, $3, $4)";

/// The values of [`RECORD`] after the consumer.
pub(super) fn recorded(metadata: &Metadata) -> (String, &str, i64) {
    let message_id = metadata.message_id.as_uuid().simple().to_string();
    match &metadata.aggregate {
        Some(aggregate) => (message_id, &aggregate.aggregate_id, aggregate.sequence),
        None => (message_id, "", 0),
    }
}
