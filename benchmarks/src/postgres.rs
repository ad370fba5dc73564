use std::str::FromStr as _;

use anyhow::{Context as _, Result};
use outbox_runtime::prelude::*;
use sqlx::postgres::{PgConnectOptions, PgConnection, PgPool, PgPoolOptions};
use sqlx::{AssertSqlSafe, ConnectOptions as _, Connection as _, Executor as _, Postgres};

/// The server on which databases are made for the sections.
pub(crate) struct Server {
    options: PgConnectOptions,
    url: String,
    prefix: String,
}

impl Server {
    pub(crate) fn at(url: &str, prefix: &str) -> Result<Self> {
        let options = PgConnectOptions::from_str(url).context("the address of PostgreSQL")?;
        Ok(Self {
            // Slow statements are what some sections are about.
            options: options.disable_statement_logging(),
            url: url.to_owned(),
            prefix: prefix.to_owned(),
        })
    }

    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// Makes the section's database of that name anew.
    pub(crate) async fn database(&self, name: &str) -> Result<Database> {
        let name = format!("{}_{name}", self.prefix);
        let mut connection = self.connect().await?;
        for sql in [
            format!("DROP DATABASE IF EXISTS {name} WITH (FORCE)"),
            format!("CREATE DATABASE {name}"),
        ] {
            connection.execute(AssertSqlSafe(sql)).await?;
        }
        connection.close().await?;
        Ok(self.named(&name))
    }

    /// A database that another process has made.
    pub(crate) fn named(&self, name: &str) -> Database {
        Database {
            options: self.options.clone().database(name),
            server: self.options.clone(),
            name: name.to_owned(),
        }
    }

    async fn connect(&self) -> Result<PgConnection> {
        PgConnection::connect_with(&self.options)
            .await
            .context("connecting to PostgreSQL; `cargo xtask bench` starts one of its own")
    }
}

/// A database of a section's own.
#[derive(Clone)]
pub(crate) struct Database {
    options: PgConnectOptions,
    server: PgConnectOptions,
    name: String,
}

impl Database {
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// A pool with sqlx's own settings and so many connections, all open.
    pub(crate) async fn pool(&self, connections: u32) -> Result<PgPool> {
        self.pool_with(connections, PgPoolOptions::new()).await
    }

    /// The same, whose connections are not asked whether they live when they are taken.
    pub(crate) async fn pool_without_tests(&self, connections: u32) -> Result<PgPool> {
        let options = PgPoolOptions::new().test_before_acquire(false);
        self.pool_with(connections, options).await
    }

    async fn pool_with(&self, connections: u32, options: PgPoolOptions) -> Result<PgPool> {
        let options = options
            .max_connections(connections)
            .min_connections(connections);
        Ok(options.connect_with(self.options.clone()).await?)
    }

    /// An outbox on a pool, its tables made if they are not there.
    pub(crate) async fn outbox(&self, pool: &PgPool) -> Result<Outbox<Postgres>> {
        let outbox = Outbox::new("bench", pool.clone());
        outbox.migrate().await?;
        Ok(outbox)
    }

    /// A connection outside of any pool.
    pub(crate) async fn connect(&self) -> Result<PgConnection> {
        Ok(PgConnection::connect_with(&self.options).await?)
    }

    /// Removes the database.
    pub(crate) async fn drop(self) -> Result<()> {
        let mut connection = PgConnection::connect_with(&self.server).await?;
        let sql = format!("DROP DATABASE IF EXISTS {} WITH (FORCE)", self.name);
        connection.execute(AssertSqlSafe(sql)).await?;
        Ok(())
    }
}

/// Runs several statements without parameters.
pub(crate) async fn script(pool: &PgPool, sql: &'static str) -> Result<()> {
    sqlx::raw_sql(sql).execute(pool).await?;
    Ok(())
}

/// Has the server write down what earlier work left in its memory, so that no round pays for the
/// one before.
pub(crate) async fn settle(pool: &PgPool) -> Result<()> {
    script(pool, "CHECKPOINT").await
}
