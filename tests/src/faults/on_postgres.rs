use std::time::Duration;

use async_trait::async_trait;
use outbox_runtime::Metadata;
use outbox_servers::{Kind, Setup};
use sqlx::postgres::PgPoolOptions;
use sqlx::{AssertSqlSafe, Pool, Postgres};

use super::arena::{Arena, ClockFile, Needs, NotExercised, own_server};
use super::database::{FaultDb, RECORD, recorded};
use crate::Fixture;

#[async_trait]
impl FaultDb for Postgres {
    const KEY: &'static str = "postgres";
    const MESSAGE_ID: &'static str = "replace(CAST(message_id AS TEXT), '-', '')";
    const EFFECT_ID: &'static str = "BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY";
    const LOSES_ANSWERS_BY_FAULT_POINTS: bool = false;
    const LISTENS: bool = true;
    const NEWEST_AT: &'static str = "SELECT CAST(extract(epoch FROM occurred_at) AS BIGINT)
        FROM outbox_message ORDER BY id DESC LIMIT 1";

    async fn arena(needs: Needs) -> Result<Arena<Self>, NotExercised> {
        if needs == Needs::Nothing {
            let fixture = crate::postgres().await.ok_or_else(|| {
                NotExercised("OUTBOX_TEST_POSTGRES_URL names no server".to_owned())
            })?;
            return Ok(Arena::furnish(fixture, None, None).await);
        }
        let clock = (needs == Needs::Clock).then(ClockFile::new).transpose()?;
        let environment = clock.as_ref().map(ClockFile::environment);
        let setup = environment
            .into_iter()
            .flatten()
            .fold(Setup::default(), |setup, (name, value)| {
                setup.environment(name, value)
            });
        let server = own_server(Kind::Postgres, setup)?;
        let url = server.url().to_owned();
        let pool = PgPoolOptions::new()
            .max_connections(10)
            .acquire_timeout(Duration::from_secs(5))
            .connect(&url)
            .await
            .expect("a server that is ready answers");
        let fixture = Fixture::new(pool, url, None).await;
        Ok(Arena::furnish(fixture, Some(server), clock).await)
    }

    async fn open(url: &str) -> Result<Pool<Self>, sqlx::Error> {
        let options = PgPoolOptions::new()
            .max_connections(14)
            .acquire_timeout(Duration::from_secs(3));
        options.connect(url).await
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
             SELECT 'bell.rang', ('{{\"times\":' || n || '}}')::json FROM n"
        );
        fixture.run_sql(&insert).await;
        let finish = "UPDATE outbox_shard SET position = (SELECT max(id) FROM outbox_message)";
        fixture.run_sql(finish).await;
    }

    async fn hold_snapshot(connection: &mut Self::Connection) -> Result<(), sqlx::Error> {
        let begin = "BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM outbox_message";
        sqlx::raw_sql(begin).execute(connection).await?;
        Ok(())
    }

    fn clock_of_workers(_: &Arena<Self>) -> Vec<(String, String)> {
        // The server has it.
        Vec::new()
    }

    async fn strike_down(arena: &mut Arena<Self>) {
        let server = arena.server.as_mut().expect("a server of its own");
        server.kill();
        tokio::time::sleep(Duration::from_millis(fastrand::u64(100..1500))).await;
        server.run().expect("a server that ran before");
    }

    async fn cut(arena: &Arena<Self>) -> i64 {
        let ours = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
            WHERE datname = current_database() AND pid <> pg_backend_pid()";
        Self::try_number(&arena.fixture.pool, ours)
            .await
            .unwrap_or(0)
    }

    async fn cut_listeners(arena: &Arena<Self>) -> i64 {
        let listening = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
            WHERE datname = current_database() AND query LIKE 'LISTEN%'";
        Self::try_number(&arena.fixture.pool, listening)
            .await
            .unwrap_or(0)
    }
}
