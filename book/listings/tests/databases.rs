//! Listings of the chapter on databases and migrations.

use std::error::Error as StdError;
use std::path::Path;

use book_listings::{SqliteFile, postgres};
use outbox_runtime::Error;
use outbox_runtime::prelude::*;
use sqlx::migrate::Migrator;
use sqlx::sqlite::{
    SqliteConnectOptions, SqliteJournalMode, SqlitePool, SqlitePoolOptions, SqliteSynchronous,
};
use sqlx::{PgPool, Row};

#[domain_event(version = 1)]
pub struct LampSwitched {
    pub on: bool,
}

async fn switch<DB: Backend>(outbox: &Outbox<DB>) -> Result<(), Error> {
    let mut uow = outbox.begin(MessageContext::new()).await?;
    uow.raise(LampSwitched { on: true })?;
    uow.commit().await
}

// ANCHOR: sqlite
async fn open_sqlite(file: &Path) -> Result<SqlitePool, sqlx::Error> {
    let options = SqliteConnectOptions::new()
        .filename(file)
        .create_if_missing(true)
        .journal_mode(SqliteJournalMode::Wal) // readers and the writer don't block each other
        .synchronous(SqliteSynchronous::Full); // a commit survives a power cut
    SqlitePoolOptions::new()
        .max_connections(8)
        .connect_with(options)
        .await
}
// ANCHOR_END: sqlite

#[tokio::test]
async fn sqlite_opens() -> Result<(), Box<dyn StdError>> {
    let folder = SqliteFile::with_tables("").await;
    let outbox = Outbox::new("house", open_sqlite(&folder.folder().join("a.db")).await?);
    outbox.migrate().await?;
    outbox.migrate().await?; // again is fine
    Ok(switch(&outbox).await?)
}

#[tokio::test]
async fn the_sql_lives_among_own_migrations() -> Result<(), Box<dyn StdError>> {
    let file = SqliteFile::with_tables("").await;
    let folder = file.folder().join("migrations");
    std::fs::create_dir(&folder)?;
    let own = "CREATE TABLE lamps (id INTEGER PRIMARY KEY)";
    std::fs::write(folder.join("0001_lamps.sql"), own)?;
    let outbox = Outbox::new("house", file.pool.clone());
    // ANCHOR: files
    for migration in outbox.migrations() {
        let number = 1000 + migration.version; // a range that your own files leave free
        let name = format!("{number}_{}.sql", migration.name);
        std::fs::write(folder.join(name), migration.sql.as_bytes())?;
    }
    // ANCHOR_END: files
    Migrator::new(folder).await?.run(&file.pool).await?;
    outbox.check_migrations().await?;
    outbox.migrate().await?; // finds nothing to do
    Ok(switch(&outbox).await?)
}

#[tokio::test]
async fn own_migrations_and_ours_go_in_either_order() -> Result<(), Box<dyn StdError>> {
    for ours_first in [true, false] {
        let file = SqliteFile::with_tables("").await;
        let folder = file.folder().join("migrations");
        std::fs::create_dir(&folder)?;
        std::fs::write(
            folder.join("0001_lamps.sql"),
            "CREATE TABLE lamps (id INTEGER PRIMARY KEY)",
        )?;
        let outbox = Outbox::new("house", file.pool.clone());
        let migrator = Migrator::new(folder).await?;
        if ours_first {
            outbox.migrate().await?;
            migrator.run(&file.pool).await?;
        } else {
            migrator.run(&file.pool).await?;
            outbox.migrate().await?;
        }
        switch(&outbox).await?;
    }
    Ok(())
}

#[tokio::test]
async fn a_database_without_tables_is_recognised() -> Result<(), Box<dyn StdError>> {
    let file = SqliteFile::with_tables("").await;
    let outbox = Outbox::new("house", file.pool.clone());
    // ANCHOR: check
    let answer = outbox.check_migrations().await;
    assert!(matches!(answer, Err(Error::NotMigrated { found: 0, .. })));
    // ANCHOR_END: check
    Ok(())
}

#[tokio::test]
async fn two_services_share_a_database_by_prefix() -> Result<(), Box<dyn StdError>> {
    let file = SqliteFile::with_tables("").await;
    let pool = file.pool.clone();
    // ANCHOR: prefix
    let house = Outbox::builder("house", pool.clone())
        .prefix("house_")
        .build()?;
    let garden = Outbox::builder("garden", pool).prefix("garden_").build()?;
    house.migrate().await?; // house_outbox_message and the others
    garden.migrate().await?; // garden_outbox_message and the others
    // ANCHOR_END: prefix
    switch(&house).await?;
    let count = |table| sqlx::query_scalar::<_, i64>(table).fetch_one(&file.pool);
    assert_eq!(count("SELECT count(*) FROM house_outbox_message").await?, 1);
    assert_eq!(
        count("SELECT count(*) FROM garden_outbox_message").await?,
        0
    );
    Ok(())
}

#[tokio::test]
async fn a_schema_holds_the_tables_on_postgres() -> Result<(), Box<dyn StdError>> {
    let Some(pool) = postgres("schema", "").await else {
        return Ok(());
    };
    let messaging = format!("messaging_{}", std::process::id());
    let messaging = messaging.as_str();
    // ANCHOR: schema
    let outbox = Outbox::builder("house", pool.clone())
        .schema(messaging)
        .build()?;
    outbox.migrate().await?; // creates the schema too
    // ANCHOR_END: schema
    switch(&outbox).await?;
    foreign_writer(&pool, messaging).await
}

/// What a trigger, or a program in another language, would do.
async fn foreign_writer(pool: &PgPool, schema: &str) -> Result<(), Box<dyn StdError>> {
    let search_path = format!("SET LOCAL search_path TO {schema}");
    let mut transaction = pool.begin().await?;
    sqlx::raw_sql(sqlx::AssertSqlSafe(search_path))
        .execute(&mut *transaction)
        .await?;
    sqlx::raw_sql(include_str!("../sql/foreign_writer.sql"))
        .execute(&mut *transaction)
        .await?;
    let row = sqlx::query("SELECT count(*) FROM outbox_message")
        .fetch_one(&mut *transaction)
        .await?;
    assert_eq!(row.get::<i64, _>(0), 2);
    transaction.commit().await?;
    Ok(())
}

#[tokio::test]
async fn finished_rows_are_removed() -> Result<(), Box<dyn std::error::Error>> {
    use outbox_runtime::retention::{Cleaner, Keep, Removed, Retention};
    use std::time::Duration;

    let file = SqliteFile::with_tables("").await;
    let outbox = Outbox::new("shop", file.pool.clone());
    outbox.migrate().await?;
    // ANCHOR: retention
    let day = Duration::from_secs(24 * 3600);
    let retention = Retention::new()
        .outbox(Keep::for_age(7 * day).at_least(10_000))
        .journal(Keep::for_age(7 * day))
        .inbox(Keep::for_age(30 * day));
    // ANCHOR_END: retention
    let removed = Cleaner::new(outbox, retention)?.clean_once().await?;
    assert_eq!(removed, Removed::default());
    Ok(())
}
