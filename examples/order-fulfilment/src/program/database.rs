use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use anyhow::{Context, bail};
use async_trait::async_trait;
use order_fulfilment::{BoundedContext, ShopDb, books};
use sqlx::postgres::{PgConnectOptions, PgPoolOptions};
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions, SqliteSynchronous};
use sqlx::{Connection, PgConnection, PgPool, Pool, Postgres, Sqlite, SqlitePool};
use tokio::time::timeout;

const CONNECT_WITHIN: Duration = Duration::from_secs(10);

/// A connection to one of the databases that the program runs on.
pub(crate) enum Database {
    Sqlite(SqlitePool),
    Postgres(PgPool),
}

impl Database {
    /// Connects, and says for people where; the password never shows.
    pub(crate) async fn connect(text: &str) -> anyhow::Result<(Self, String)> {
        match text.split_once("://") {
            Some(("postgres" | "postgresql", _)) => connect_postgres(text).await,
            Some(("sqlite", path)) => connect_sqlite(path).await,
            Some((scheme, _)) => bail!(
                "the database can't be a {scheme:?} URL; give the path of an SQLite file or postgres://USER:PASSWORD@HOST/DATABASE"
            ),
            None => connect_sqlite(text.strip_prefix("sqlite:").unwrap_or(text)).await,
        }
    }
}

async fn connect_sqlite(path: &str) -> anyhow::Result<(Database, String)> {
    if path.is_empty() {
        bail!("the database has no name; give the path of an SQLite file or a postgres:// URL");
    }
    if path.starts_with(":memory:") {
        bail!(
            "a database in memory would not outlive the program; give the path of an SQLite file"
        );
    }
    let path = std::path::absolute(PathBuf::from(path))
        .with_context(|| format!("{path} is no path of a database"))?;
    let options = SqliteConnectOptions::new()
        .filename(&path)
        .create_if_missing(true)
        .busy_timeout(Duration::from_secs(30))
        // With a write-ahead log readers never wait for the writer. A killed process loses
        // nothing under NORMAL; against a power cut FULL would be needed, at a sync per commit.
        .journal_mode(SqliteJournalMode::Wal)
        .synchronous(SqliteSynchronous::Normal);
    let pool = SqlitePoolOptions::new()
        .max_connections(8)
        .acquire_timeout(CONNECT_WITHIN)
        .connect_with(options)
        .await
        .with_context(|| {
            format!("the SQLite database {} can't be opened; is it a database, and its folder there and writable?", path.display())
        })?;
    Ok((
        Database::Sqlite(pool),
        format!("SQLite file {}", path.display()),
    ))
}

async fn connect_postgres(url: &str) -> anyhow::Result<(Database, String)> {
    // The source of this error is left out: it might quote the URL and so the password.
    let Ok(options) = PgConnectOptions::from_str(url) else {
        bail!(
            "the PostgreSQL URL can't be understood; its form is postgres://USER:PASSWORD@HOST:PORT/DATABASE"
        );
    };
    let place = format!(
        "PostgreSQL database {} at {}:{}",
        options.get_database().unwrap_or(options.get_username()),
        options.get_host(),
        options.get_port()
    );
    // A pool would try again and again; a single connection says at once what is wrong.
    let connected = timeout(CONNECT_WITHIN, PgConnection::connect_with(&options)).await;
    let unreachable = || format!("the {place} can't be reached");
    let connection = connected
        .with_context(unreachable)?
        .with_context(unreachable)?;
    connection.close().await.with_context(unreachable)?;
    let pool = PgPoolOptions::new()
        // More than the consumers' 16 handlers at a time, so that relay and placing get theirs.
        .max_connections(24)
        .connect_lazy_with(options);
    Ok((Database::Postgres(pool), place))
}

/// How far the saga is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Progress {
    pub(crate) orders: i64,
    pub(crate) finished: i64,
    pub(crate) to_handle: i64,
    pub(crate) handled: i64,
    pub(crate) events: i64,
    pub(crate) published: i64,
}

impl Progress {
    /// Nothing is left to do for anybody.
    pub(crate) fn is_drained(&self) -> bool {
        self.handled >= self.to_handle && self.published >= self.events
    }
}

/// The SQL of the program itself, which is none of the contexts' business.
#[async_trait]
pub(crate) trait ProgramDb: ShopDb {
    /// Makes the tables of the three contexts where they are missing.
    async fn create_tables(pool: &Pool<Self>) -> sqlx::Result<()>;
    /// How far the saga is.
    async fn progress(pool: &Pool<Self>) -> sqlx::Result<Progress>;
    /// All figures of the reconciliation by their names.
    async fn books(pool: &Pool<Self>) -> sqlx::Result<Vec<(String, i64)>>;
}

macro_rules! program_db {
    ($database:ty, $tables:expr) => {
        #[async_trait]
        impl ProgramDb for $database {
            async fn create_tables(pool: &Pool<Self>) -> sqlx::Result<()> {
                for context in BoundedContext::ALL {
                    sqlx::raw_sql($tables(context)).execute(pool).await?;
                }
                Ok(())
            }

            async fn progress(pool: &Pool<Self>) -> sqlx::Result<Progress> {
                let (orders, finished, to_handle, handled, events, published) =
                    sqlx::query_as(include_str!("../../sql/progress.sql"))
                        .fetch_one(pool)
                        .await?;
                Ok(Progress {
                    orders,
                    finished,
                    to_handle,
                    handled,
                    events,
                    published,
                })
            }

            async fn books(pool: &Pool<Self>) -> sqlx::Result<Vec<(String, i64)>> {
                sqlx::query_as(books::SQL).fetch_all(pool).await
            }
        }
    };
}

program_db!(Sqlite, BoundedContext::sqlite_tables);
program_db!(Postgres, BoundedContext::postgres_tables);
