use std::time::Duration;

use async_trait::async_trait;
use outbox_runtime::Metadata;
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions, SqliteSynchronous};
use sqlx::{AssertSqlSafe, ConnectOptions, Connection, Pool, Sqlite};

use super::arena::{Arena, ClockFile, Needs, NotExercised};
use super::database::{FaultDb, RECORD, recorded};
use crate::Fixture;

#[async_trait]
impl FaultDb for Sqlite {
    const KEY: &'static str = "sqlite";
    const MESSAGE_ID: &'static str = "lower(hex(message_id))";
    const EFFECT_ID: &'static str = "INTEGER PRIMARY KEY AUTOINCREMENT";
    const LOSES_ANSWERS_BY_FAULT_POINTS: bool = true;
    const LISTENS: bool = false;
    const NEWEST_AT: &'static str =
        "SELECT occurred_at / 1000 FROM outbox_message ORDER BY id DESC LIMIT 1";

    async fn arena(needs: Needs) -> Result<Arena<Self>, NotExercised> {
        let clock = (needs == Needs::Clock).then(ClockFile::new).transpose()?;
        Ok(Arena::furnish(crate::sqlite().await, None, clock).await)
    }

    async fn open(url: &str) -> Result<Pool<Self>, sqlx::Error> {
        let options: SqliteConnectOptions = url.parse()?;
        let options = options
            .journal_mode(SqliteJournalMode::Wal)
            .synchronous(SqliteSynchronous::Normal)
            // Less than the file is locked for in the tests, so that statements do fail.
            .busy_timeout(Duration::from_secs(1));
        let pool = SqlitePoolOptions::new()
            .max_connections(8)
            .acquire_timeout(Duration::from_secs(3));
        pool.connect_with(options).await
    }

    async fn try_number(pool: &Pool<Self>, sql: &str) -> Result<i64, sqlx::Error> {
        sqlx::query_scalar(AssertSqlSafe(sql)).fetch_one(pool).await
    }

    async fn try_run(pool: &Pool<Self>, sql: &str) -> Result<(), sqlx::Error> {
        sqlx::raw_sql(AssertSqlSafe(sql)).execute(pool).await?;
        Ok(())
    }

    async fn record(
        connection: &mut Self::Connection,
        consumer: &str,
        metadata: &Metadata,
    ) -> Result<(), sqlx::Error> {
        let (message_id, aggregate_id, sequence) = recorded(metadata);
        sqlx::query(RECORD)
            .bind(consumer)
            .bind(message_id)
            .bind(aggregate_id)
            .bind(sequence)
            .execute(connection)
            .await?;
        Ok(())
    }

    async fn is_poisoned(
        connection: &mut Self::Connection,
        account: &str,
    ) -> Result<bool, sqlx::Error> {
        let sql = "SELECT count(*) FROM poison WHERE account = $1";
        let found: i64 = sqlx::query_scalar(sql)
            .bind(account)
            .fetch_one(connection)
            .await?;
        Ok(found > 0)
    }

    async fn forget(
        connection: &mut Self::Connection,
        consumer: &str,
        metadata: &Metadata,
    ) -> Result<(), sqlx::Error> {
        sqlx::query("DELETE FROM inbox_message WHERE consumer = $1 AND message_id = $2")
            .bind(consumer)
            .bind(metadata.message_id.as_uuid())
            .execute(connection)
            .await?;
        Ok(())
    }

    async fn fill(fixture: &Fixture<Self>, rows: i64) {
        let insert = format!(
            "WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < {rows})
             INSERT INTO outbox_message (event_type, payload)
             SELECT 'bell.rang', '{{\"times\":' || n || '}}' FROM n"
        );
        fixture.run_sql(&insert).await;
        let finish = "UPDATE outbox_shard SET position = (SELECT max(id) FROM outbox_message)";
        fixture.run_sql(finish).await;
    }

    async fn hold_snapshot(connection: &mut Self::Connection) -> Result<(), sqlx::Error> {
        let begin = "BEGIN; SELECT count(*) FROM outbox_message";
        sqlx::raw_sql(begin).execute(connection).await?;
        Ok(())
    }

    fn clock_of_workers(arena: &Arena<Self>) -> Vec<(String, String)> {
        let clock = arena.clock.as_ref();
        clock.map(ClockFile::environment).unwrap_or_default()
    }

    /// Locks the file against all other writers for longer than they wait.
    async fn strike_down(arena: &mut Arena<Self>) {
        let options: SqliteConnectOptions = arena.fixture.url.parse().expect("a URL of ours");
        let options = options.busy_timeout(Duration::from_secs(30));
        let mut connection = options.connect().await.expect("the file opens");
        let locked = sqlx::raw_sql("BEGIN EXCLUSIVE").execute(&mut connection);
        locked.await.expect("a turn comes");
        tokio::time::sleep(Duration::from_millis(fastrand::u64(1200..2500))).await;
        connection.close_hard().await.expect("the lock goes");
    }

    async fn cut(_: &Arena<Self>) -> i64 {
        0
    }

    async fn cut_listeners(_: &Arena<Self>) -> i64 {
        0
    }
}
