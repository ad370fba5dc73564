//! What the book's listings share: throw-away databases.

use sqlx::postgres::{PgConnectOptions, PgPoolOptions};
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePool};
use sqlx::{AssertSqlSafe, PgPool};
use tempfile::TempDir;

/// An SQLite database in a folder that goes with it.
pub struct SqliteFile {
    /// Connections to it.
    pub pool: SqlitePool,
    folder: TempDir,
}

impl SqliteFile {
    /// A database with the tables that `sql` creates.
    pub async fn with_tables(sql: &'static str) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let options = SqliteConnectOptions::new()
            .filename(folder.path().join("listing.db"))
            .create_if_missing(true)
            .journal_mode(SqliteJournalMode::Wal);
        let pool = SqlitePool::connect_with(options).await.expect("a database");
        sqlx::raw_sql(sql).execute(&pool).await.expect("tables");
        Self { pool, folder }
    }

    /// A folder for files of the test.
    pub fn folder(&self) -> &std::path::Path {
        self.folder.path()
    }
}

/// A schema of its own on the test server's PostgreSQL, with the tables that `sql` creates; none
/// where no server is announced.
///
/// The schema stays behind: the server is thrown away after the tests.
pub async fn postgres(schema: &str, sql: &'static str) -> Option<PgPool> {
    let Ok(url) = std::env::var("OUTBOX_TEST_POSTGRES_URL") else {
        let must = std::env::var("OUTBOX_TEST_REQUIRE_ALL").is_ok_and(|value| value == "1");
        assert!(!must, "OUTBOX_TEST_POSTGRES_URL is not set");
        println!("skipped: OUTBOX_TEST_POSTGRES_URL is not set");
        return None;
    };
    let schema = format!("book_{schema}_{}", std::process::id());
    let options: PgConnectOptions = url.parse().expect("the server's address");
    let pool = PgPoolOptions::new()
        .max_connections(5)
        .connect_with(options.options([("search_path", schema.as_str())]))
        .await
        .expect("the test server");
    let create = format!("CREATE SCHEMA {schema}");
    sqlx::raw_sql(AssertSqlSafe(create))
        .execute(&pool)
        .await
        .expect("a schema");
    sqlx::raw_sql(sql).execute(&pool).await.expect("tables");
    Some(pool)
}
