use async_trait::async_trait;
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions, SqliteSynchronous};
use sqlx::{AssertSqlSafe, Pool, Sqlite};

use crate::{Fixture, TestDatabase};

/// A database file of its own, in a folder that goes with the fixture.
pub async fn sqlite() -> Fixture<Sqlite> {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("test.db");
    let options = SqliteConnectOptions::new()
        .filename(&path)
        .create_if_missing(true)
        .journal_mode(SqliteJournalMode::Wal)
        .synchronous(SqliteSynchronous::Normal);
    let pool = SqlitePoolOptions::new()
        .max_connections(8)
        .connect_with(options)
        .await
        .expect("the file opens");
    let url = format!("sqlite://{}", path.display());
    Fixture::new(pool, url, Some(folder)).await
}

#[async_trait]
impl TestDatabase for Sqlite {
    // It has nothing that sleeps, so it counts.
    const SLOW_PARKING: &'static str = "
        CREATE TRIGGER slowly BEFORE INSERT ON outbox_parked
        BEGIN
            SELECT count(*) FROM (
                WITH RECURSIVE step (n) AS (
                    SELECT 1 UNION ALL SELECT n + 1 FROM step WHERE n < 15000
                )
                SELECT n FROM step
            );
        END";

    async fn run_sql(pool: &Pool<Self>, sql: &str) {
        sqlx::raw_sql(AssertSqlSafe(sql))
            .execute(pool)
            .await
            .expect(sql);
    }

    async fn number(pool: &Pool<Self>, sql: &str) -> i64 {
        sqlx::query_scalar(AssertSqlSafe(sql))
            .fetch_one(pool)
            .await
            .expect(sql)
    }

    async fn texts(pool: &Pool<Self>, sql: &str) -> Vec<String> {
        sqlx::query_scalar(AssertSqlSafe(sql))
            .fetch_all(pool)
            .await
            .expect(sql)
    }
}
