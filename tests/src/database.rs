use async_trait::async_trait;
use outbox_runtime::{Backend, Outbox};
use sqlx::Pool;

/// A database that tests can look into.
#[async_trait]
pub trait TestDatabase: Backend {
    /// Makes the parking of each message take milliseconds.
    const SLOW_PARKING: &'static str;

    /// Runs SQL; several statements are allowed.
    async fn run_sql(pool: &Pool<Self>, sql: &str);

    /// The one number that a query answers.
    async fn number(pool: &Pool<Self>, sql: &str) -> i64;

    /// The first column of all rows, as text.
    async fn texts(pool: &Pool<Self>, sql: &str) -> Vec<String>;
}

/// A fresh database of one test, with the outbox's tables in it.
pub struct Fixture<DB: TestDatabase> {
    /// The pool.
    pub pool: Pool<DB>,
    /// An outbox of the service `test`.
    pub outbox: Outbox<DB>,
    /// Where the database is, for a pool of the test's own.
    pub url: String,
    /// Removes what holds the database.
    pub(crate) _guard: Option<tempfile::TempDir>,
}

impl<DB: TestDatabase> Fixture<DB> {
    pub(crate) async fn new(pool: Pool<DB>, url: String, guard: Option<tempfile::TempDir>) -> Self {
        let outbox = Outbox::new("test", pool.clone());
        outbox.migrate().await.expect("the outbox migrates");
        Self {
            pool,
            outbox,
            url,
            _guard: guard,
        }
    }

    /// Runs SQL; several statements are allowed.
    pub async fn run_sql(&self, sql: &str) {
        DB::run_sql(&self.pool, sql).await;
    }

    /// The one number that a query answers.
    pub async fn number(&self, sql: &str) -> i64 {
        DB::number(&self.pool, sql).await
    }

    /// The first column of all rows, as text.
    pub async fn texts(&self, sql: &str) -> Vec<String> {
        DB::texts(&self.pool, sql).await
    }

    /// How many events are in the outbox.
    pub async fn events(&self) -> i64 {
        self.number("SELECT count(*) FROM outbox_message").await
    }
}
