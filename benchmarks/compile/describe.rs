//! Runs the crate whose check is measured, and prints all that can be seen of it: both ways of
//! writing it must print the same. A line that holds NN stands here once for each aggregate.

use std::error::Error;
use std::fmt::Debug;
use std::time::Duration;

use THE_CRATE::parcelNN;
use THE_CRATE::{Address, Limits};
use outbox_runtime::handler::{AggregateRegistration, EventRegistration, HandlerRegistration};
use outbox_runtime::prelude::*;
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePool};
use sqlx::{AssertSqlSafe, Sqlite};

type Outcome = Result<(), Box<dyn Error>>;

#[tokio::main]
async fn main() -> Outcome {
    let file = std::env::args()
        .nth(1)
        .ok_or("name a file for the database")?;
    let options = SqliteConnectOptions::new()
        .filename(file)
        .create_if_missing(true)
        .journal_mode(SqliteJournalMode::Wal);
    let pool = SqlitePool::connect_with(options).await?;
    let outbox = Outbox::new("parcels", pool.clone());
    outbox.migrate().await?;
    registrations(&pool).await?;

    add(&outbox, parcelNN::ParcelNN::pack("p", home())).await?;
    App::new(outbox.clone())
        .broker(InProcessBroker::new())
        .state(Limits { grams: 300 })
        .run_until(all_handled(pool.clone()))
        .await?;

    loaded::<parcelNN::ParcelNN>(&outbox, "p".to_owned().into()).await?;
    rows(&pool).await
}

async fn add<A: Aggregate>(outbox: &Outbox<Sqlite>, mut aggregate: A) -> Outcome
where
    Sqlite: Stores<A>,
{
    let mut uow = outbox.begin(MessageContext::new()).await?;
    uow.add(&mut aggregate).await?;
    Ok(uow.commit().await?)
}

fn home() -> Address {
    Address {
        street: "Harbour Street".to_owned(),
        city: "Lisbon".to_owned(),
        country: "PT".to_owned(),
    }
}

/// Prints what registered itself, and creates the tables of the aggregates.
async fn registrations(pool: &SqlitePool) -> Outcome {
    let mut lines = Vec::new();
    for event in EventRegistration::all() {
        let path = without_crate(event.rust_type);
        lines.push(format!("event {} v{} {path}", event.name, event.version));
    }
    for handler in HandlerRegistration::all() {
        let (consumer, event) = (handler.consumer, handler.event_type);
        let (versions, states) = (handler.versions, (handler.states)().len());
        let path = without_crate(handler.function);
        let entries = handler.entry::<Sqlite>().iter().count();
        lines.push(format!(
            "handler {consumer} {event} {versions:?} {states} {entries} {path}"
        ));
    }
    for aggregate in AggregateRegistration::all() {
        let table = (aggregate.table)();
        let path = without_crate(aggregate.rust_type);
        lines.push(format!(
            "aggregate {} {path} {table:?}",
            aggregate.aggregate_type
        ));
        let columns: Vec<_> = table.columns().collect();
        let (table, id, columns) = (table.table(), table.id(), columns.join(", "));
        let sql = format!("CREATE TABLE {table} ({columns}, PRIMARY KEY ({id}))");
        sqlx::raw_sql(AssertSqlSafe(sql)).execute(pool).await?;
    }
    lines.sort();
    println!("{}", lines.join("\n"));
    Ok(())
}

fn without_crate(path: &str) -> &str {
    path.split_once("::").map_or(path, |(_, path)| path)
}

async fn all_handled(pool: SqlitePool) {
    let handlers = i64::try_from(HandlerRegistration::all().count()).unwrap_or(i64::MAX);
    loop {
        let sql = "SELECT count(*) FROM inbox_message";
        let handled: Result<i64, _> = sqlx::query_scalar(sql).fetch_one(&pool).await;
        if handled.is_ok_and(|handled| handled == handlers) {
            return;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

async fn loaded<A>(outbox: &Outbox<Sqlite>, id: A::Id) -> Outcome
where
    A: Aggregate + Debug,
    Sqlite: Stores<A>,
{
    let mut uow = outbox.begin(MessageContext::new()).await?;
    println!("loaded {:?}", uow.get::<A>(&id).await?);
    Ok(())
}

/// Prints what stands in the outbox and in the inbox.
async fn rows(pool: &SqlitePool) -> Outcome {
    let sql = "SELECT 'stored ' || event_type || ' v' || schema_version || ' ' || aggregate_type
                   || ' ' || aggregate_id || ' ' || ifnull(business_key, '-') || ' ' || payload
               FROM outbox_message
               UNION ALL
               SELECT 'handled ' || consumer || ' ' || idempotency_key || ' ' || event_type
               FROM inbox_message
               ORDER BY 1";
    let rows: Vec<String> = sqlx::query_scalar(sql).fetch_all(pool).await?;
    println!("{}", rows.join("\n"));
    Ok(())
}
