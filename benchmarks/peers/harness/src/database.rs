//! The database of a run: made before it, dropped after it.

use anyhow::{Context, Result};
use sqlx::postgres::{PgConnectOptions, PgConnection, PgPool, PgPoolOptions};
use sqlx::{AssertSqlSafe, ConnectOptions, Connection};

/// A database of its own on the server that was named.
#[derive(Debug)]
pub struct Database {
    server: PgConnectOptions,
    name: String,
}

impl Database {
    /// Makes it afresh: one that an interrupted run left behind is dropped first.
    pub(crate) async fn create(url: &str, system: &str) -> Result<Self> {
        let server: PgConnectOptions = url
            .parse()
            .with_context(|| format!("`{url}` is no PostgreSQL URL"))?;
        let name = format!("outbox_bench_peers_{}", system.replace('-', "_"));
        let database = Self { server, name };
        database.drop().await?;
        database
            .on_server(&format!("CREATE DATABASE {}", database.name))
            .await
            .context("cannot create a database; the role must be allowed to")?;
        Ok(database)
    }

    /// Drops it with whatever connections are still open.
    pub(crate) async fn drop(&self) -> Result<()> {
        self.on_server(&format!(
            "DROP DATABASE IF EXISTS {} WITH (FORCE)",
            self.name
        ))
        .await
        .with_context(|| format!("cannot drop the database {}", self.name))
    }

    /// Where it is, for a system that takes a URL or has an older sqlx.
    pub fn url(&self) -> String {
        self.options().to_url_lossy().to_string()
    }

    /// One connection.
    pub async fn connect(&self) -> Result<PgConnection> {
        Ok(PgConnection::connect_with(&self.options()).await?)
    }

    /// A pool that opens all of its connections, so that a run need not, and does not ask the server whether a
    /// connection is well before every use, which would be one more round trip.
    pub async fn pool(&self, connections: u32) -> Result<PgPool> {
        Ok(PgPoolOptions::new()
            .min_connections(connections)
            .max_connections(connections)
            .test_before_acquire(false)
            .connect_with(self.options())
            .await?)
    }

    fn options(&self) -> PgConnectOptions {
        self.server.clone().database(&self.name)
    }

    async fn on_server(&self, sql: &str) -> Result<()> {
        let mut connection = PgConnection::connect_with(&self.server)
            .await
            .context("cannot connect to PostgreSQL")?;
        sqlx::raw_sql(AssertSqlSafe(sql))
            .execute(&mut connection)
            .await?;
        connection.close().await?;
        Ok(())
    }
}
