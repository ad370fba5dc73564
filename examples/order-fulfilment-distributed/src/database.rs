//! A database for each service, on one PostgreSQL server here.

use std::str::FromStr;
use std::time::Duration;

use anyhow::{Context, bail};
use order_fulfilment::BoundedContext;
use outbox_runtime::prelude::*;
use sqlx::postgres::{PgConnectOptions, PgPoolOptions};
use sqlx::{Connection, PgConnection, PgPool, Postgres};
use tokio::time::timeout;

const CONNECT_WITHIN: Duration = Duration::from_secs(10);

/// The PostgreSQL server of the services.
pub(crate) struct Server {
    options: PgConnectOptions,
}

impl Server {
    /// Reads its URL; nothing is connected.
    pub(crate) fn parse(url: &str) -> anyhow::Result<Self> {
        if !url.starts_with("postgres://") && !url.starts_with("postgresql://") {
            bail!(
                "the database has to be a PostgreSQL server; its URL's form is postgres://USER:PASSWORD@HOST:PORT/DATABASE"
            );
        }
        // The source of this error is left out: it might quote the URL and so the password.
        let Ok(options) = PgConnectOptions::from_str(url) else {
            bail!(
                "the PostgreSQL URL can't be understood; its form is postgres://USER:PASSWORD@HOST:PORT/DATABASE"
            );
        };
        Ok(Self { options })
    }

    /// Connects to a service's database. Where that, or a table in it, is missing, it is made, so
    /// that it does not matter which process starts first.
    pub(crate) async fn open(
        &self,
        context: BoundedContext,
        connections: u32,
    ) -> anyhow::Result<Outbox<Postgres>> {
        self.create(context).await?;
        let pool = PgPoolOptions::new()
            .max_connections(connections)
            .connect_lazy_with(self.options.clone().database(&name(context)));
        let outbox = Outbox::new(context.name(), pool);
        outbox
            .migrate()
            .await
            .context("the outbox's tables can't be made")?;
        make_tables(outbox.pool(), context)
            .await
            .context("the service's tables can't be made")?;
        Ok(outbox)
    }

    /// A connection to each service's database, to look at what is there.
    pub(crate) async fn readers(&self) -> anyhow::Result<Vec<(BoundedContext, PgConnection)>> {
        let mut readers = Vec::new();
        for context in BoundedContext::ALL {
            let reader = self.connect(&name(context)).await.with_context(|| {
                format!(
                    "there is nothing to see of {} yet, or no way to it",
                    context.name()
                )
            })?;
            readers.push((context, reader));
        }
        Ok(readers)
    }

    /// A connection of its own to one of the databases.
    pub(crate) async fn connect(&self, database: &str) -> anyhow::Result<PgConnection> {
        let options = self.options.clone().database(database);
        let unreachable = || {
            format!(
                "the PostgreSQL database {database} at {}:{} can't be reached",
                options.get_host(),
                options.get_port()
            )
        };
        // A pool would try again and again; a single connection says at once what is wrong.
        timeout(CONNECT_WITHIN, PgConnection::connect_with(&options))
            .await
            .with_context(unreachable)?
            .with_context(unreachable)
    }

    async fn create(&self, context: BoundedContext) -> anyhow::Result<()> {
        let administrative = self.options.get_database().unwrap_or("postgres");
        let mut connection = self.connect(administrative).await?;
        let name = name(context);
        let created = async {
            // Two databases can't be made at once from one template; the lock goes with the session.
            sqlx::query("SELECT pg_advisory_lock(7)")
                .execute(&mut connection)
                .await?;
            let exists: bool =
                sqlx::query_scalar("SELECT EXISTS (SELECT FROM pg_database WHERE datname = $1)")
                    .bind(&name)
                    .fetch_one(&mut connection)
                    .await?;
            if !exists {
                let create = sqlx::AssertSqlSafe(format!("CREATE DATABASE {name}"));
                sqlx::query(create).execute(&mut connection).await?;
            }
            connection.close().await
        };
        created
            .await
            .with_context(|| format!("the database {name} can't be made"))
    }
}

/// The database of a service.
pub(crate) fn name(context: BoundedContext) -> String {
    format!("fulfilment_{}", context.name())
}

async fn make_tables(pool: &PgPool, context: BoundedContext) -> sqlx::Result<()> {
    for script in [
        context.postgres_tables(),
        include_str!("../sql/process.sql"),
    ] {
        sqlx::raw_sql(script).execute(pool).await?;
    }
    Ok(())
}
