use sqlx::{AssertSqlSafe, Executor, Pool, Postgres};

use crate::store::{Error, Migration, MigrationStore, Names};

/// Number, name and SQL of each migration, oldest first.
const MIGRATIONS: [(i64, &str, &str); 7] = [
    (1, "outbox", include_str!("migrations/0001_outbox.sql")),
    (2, "parking", include_str!("migrations/0002_parking.sql")),
    (
        3,
        "inbox_parking",
        include_str!("migrations/0003_inbox_parking.sql"),
    ),
    (
        4,
        "scheduled",
        include_str!("migrations/0004_scheduled.sql"),
    ),
    (
        5,
        "retention",
        include_str!("migrations/0005_retention.sql"),
    ),
    (
        6,
        "dead_letters",
        include_str!("migrations/0006_dead_letters.sql"),
    ),
    (
        7,
        "partitions",
        include_str!("migrations/0007_partitions.sql"),
    ),
];

impl MigrationStore for Postgres {
    const HAS_SCHEMAS: bool = true;

    fn migrations(names: &Names) -> Vec<Migration> {
        Migration::render(names, &MIGRATIONS)
    }

    async fn migrate(pool: &Pool<Self>, names: &Names) -> Result<(), Error> {
        let doing = || Error::database("migrating the outbox tables");
        let mut transaction = pool.begin().await.map_err(doing())?;
        // Held until the commit: processes that start together migrate one after another.
        sqlx::query("SELECT pg_advisory_xact_lock(hashtextextended($1, 0))")
            .bind(names.qualified("outbox_migration"))
            .execute(&mut *transaction)
            .await
            .map_err(doing())?;
        if let Some(schema) = names.schema() {
            let sql = format!("CREATE SCHEMA IF NOT EXISTS \"{schema}\"");
            transaction
                .execute(AssertSqlSafe(sql))
                .await
                .map_err(doing())?;
        }
        let applied = applied(&mut transaction, names).await?;
        for migration in Self::migrations(names) {
            if migration.version > applied {
                transaction
                    .execute(AssertSqlSafe(migration.sql.into_owned()))
                    .await
                    .map_err(doing())?;
            }
        }
        transaction.commit().await.map_err(doing())
    }

    async fn applied(pool: &Pool<Self>, names: &Names) -> Result<i64, Error> {
        let mut connection = pool
            .acquire()
            .await
            .map_err(Error::database("reading which migrations are applied"))?;
        applied(&mut connection, names).await
    }
}

async fn applied(connection: &mut sqlx::PgConnection, names: &Names) -> Result<i64, Error> {
    let doing = || Error::database("reading which migrations are applied");
    let exists: bool = sqlx::query_scalar("SELECT to_regclass($1) IS NOT NULL")
        .bind(names.qualified("outbox_migration"))
        .fetch_one(&mut *connection)
        .await
        .map_err(doing())?;
    if !exists {
        return Ok(0);
    }
    let sql = names.render("SELECT coalesce(max(version), 0) FROM outbox_migration");
    sqlx::query_scalar(AssertSqlSafe(sql))
        .fetch_one(&mut *connection)
        .await
        .map_err(doing())
}
