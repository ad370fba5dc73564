//! A program that does not fit together, or does not fit its database, does not start, and says
//! all that is wrong at once.
#![cfg(all(feature = "sqlite", feature = "postgres"))]
#![allow(clippy::unwrap_used, dead_code)]

use outbox_runtime::Problem;
use outbox_runtime::app::{App, AppError};
use outbox_runtime::broker::InProcessBroker;
use outbox_runtime::prelude::*;
use outbox_tests::{Fixture, bank, sqlite};
use sqlx::{Postgres, Sqlite};

const SAME_EVENT: u32 = line!() + 2;
/// One of two types with one name and version.
#[domain_event(version = 1, name = "same.event")]
struct First {
    id: String,
}

/// The other.
#[domain_event(version = 1, name = "same.event")]
struct Second {
    id: String,
}

/// What the handlers take.
#[domain_event(version = 1, name = "order.placed")]
struct Placed {
    id: String,
}

const NO_TABLE: u32 = line!() + 2;
/// Nobody made its table.
#[aggregate(table = "forgotten")]
struct NoTable {
    id: String,
    root: AggregateRoot,
}

const NO_COLUMN: u32 = line!() + 2;
/// Its table lacks two of its columns.
#[aggregate(table = "orders")]
struct NoColumn {
    id: String,
    status: String,
    #[aggregate(column = "total_cents")]
    total: i64,
    root: AggregateRoot,
}

const SAME_TYPE: u32 = line!() + 2;
/// Its messages could not be told from another's.
#[aggregate(table = "orders", type_name = "NoTable")]
struct Twin {
    id: String,
    root: AggregateRoot,
}

/// A state that nobody sets.
#[derive(Clone)]
struct Limits;

type Result<T = ()> = std::result::Result<T, outbox_runtime::Error>;

#[idempotent_handler(consumer = "twice", key = "{message_id}")]
async fn twice_one(_: Envelope<Placed>, _: &mut UnitOfWork<'_, Sqlite>) -> Result {
    Ok(())
}

const TWICE: u32 = line!() + 1;
#[idempotent_handler(consumer = "twice", key = "{message_id}")]
async fn twice_two(_: Envelope<Placed>, _: &mut UnitOfWork<'_, Sqlite>) -> Result {
    Ok(())
}

const STATELESS: u32 = line!() + 1;
#[idempotent_handler(consumer = "stateless", key = "{message_id}")]
async fn stateless<DB: Backend>(
    _: Envelope<Placed>,
    _: &mut UnitOfWork<'_, DB>,
    State(_): State<Limits>,
) -> Result {
    Ok(())
}

const ELSEWHERE: u32 = line!() + 1;
#[idempotent_handler(consumer = "elsewhere", key = "{message_id}")]
async fn elsewhere(_: Envelope<Placed>, _: &mut UnitOfWork<'_, Postgres>) -> Result {
    Ok(())
}

fn app(fixture: &Fixture<Sqlite>) -> App<Sqlite> {
    App::new(fixture.outbox.clone()).without_table_check::<bank::Account>()
}

async fn problems(app: App<Sqlite>) -> Vec<Problem> {
    match app.start().await {
        Err(AppError::Startup(problems)) => problems,
        Err(error) => panic!("{error}"),
        Ok(_) => panic!("it started"),
    }
}

/// The sentences about one line of this file.
fn at(problems: &[Problem], line: u32) -> Vec<&str> {
    problems
        .iter()
        .filter(|problem| {
            problem.place().is_some_and(|(file, at)| {
                file.ends_with("app_startup.rs") && at.abs_diff(line) <= 2
            })
        })
        .map(Problem::sentence)
        .collect()
}

fn only<'a>(sentences: &[&'a str]) -> &'a str {
    assert_eq!(sentences.len(), 1, "{sentences:?}");
    sentences[0]
}

#[tokio::test]
async fn all_problems_are_reported_at_once_with_their_places() {
    let fixture = sqlite().await;
    fixture
        .run_sql("CREATE TABLE orders (id text PRIMARY KEY, version bigint NOT NULL)")
        .await;
    fixture.run_sql("DELETE FROM outbox_migration").await;
    let found = problems(app(&fixture)).await;

    let sentence = only(&at(&found, SAME_EVENT + 6));
    assert!(sentence.contains("the event same.event v1"), "{sentence}");
    let sentence = only(&at(&found, NO_TABLE));
    assert!(sentence.contains("`forgotten`"), "{sentence}");
    assert!(sentence.contains("does not exist"), "{sentence}");
    let sentence = only(&at(&found, NO_COLUMN));
    assert!(sentence.contains("`status`, `total_cents`"), "{sentence}");
    let sentence = only(&at(&found, SAME_TYPE));
    assert!(
        sentence.contains("the aggregate type NoTable"),
        "{sentence}"
    );
    let sentence = only(&at(&found, TWICE));
    assert!(sentence.contains("`twice`"), "{sentence}");
    assert!(sentence.contains("twice_one"), "{sentence}");
    let sentence = only(&at(&found, STATELESS));
    assert!(sentence.contains("Limits"), "{sentence}");
    let sentence = only(&at(&found, ELSEWHERE));
    assert!(sentence.contains("SQLite"), "{sentence}");

    let placeless: Vec<_> = found
        .iter()
        .filter(|problem| problem.place().is_none())
        .map(Problem::sentence)
        .collect();
    assert!(
        placeless
            .iter()
            .any(|sentence| sentence.contains("nowhere to publish to"))
    );
    assert!(
        placeless
            .iter()
            .any(|sentence| sentence.contains("at migration 0"))
    );
    assert_eq!(found.len(), 9, "{found:#?}");

    let text = AppError::Startup(found).to_string();
    assert!(
        text.starts_with("9 problems keep this program from starting:\n"),
        "{text}"
    );
    assert!(
        text.contains(&format!("app_startup.rs:{TWICE}: ")),
        "{text}"
    );
}

#[tokio::test]
async fn what_belongs_elsewhere_can_be_left_out() {
    let fixture = sqlite().await;
    let app = app(&fixture)
        .broker(InProcessBroker::new())
        .state(Limits)
        .select_consumers(|consumer| consumer == "stateless")
        .without_table_check::<NoTable>()
        .without_table_check::<NoColumn>();
    let found = problems(app).await;
    // The two events and the two aggregates of one name are no matter of selection.
    assert!(only(&at(&found, SAME_EVENT + 6)).contains("same.event"));
    assert!(only(&at(&found, SAME_TYPE)).contains("NoTable"));
    assert_eq!(found.len(), 2, "{found:#?}");
}

#[tokio::test]
async fn handlers_need_somewhere_to_get_messages_from() {
    let fixture = sqlite().await;
    let app = app(&fixture)
        .publisher(InProcessBroker::new())
        .state(Limits)
        .select_consumers(|consumer| consumer == "stateless");
    let found = problems(app).await;
    assert!(
        found
            .iter()
            .any(|problem| problem.sentence().contains("nowhere to get messages from"))
    );
}

#[tokio::test]
async fn tables_that_are_newer_than_the_program_are_refused() {
    let fixture = sqlite().await;
    fixture
        .run_sql("INSERT INTO outbox_migration (version, name) VALUES (999, 'future')")
        .await;
    let found = problems(app(&fixture)).await;
    assert!(found.iter().any(|problem| {
        problem.sentence().contains("at migration 999")
            && problem.sentence().contains("deploy a newer version")
    }));
}

#[tokio::test]
async fn a_database_that_is_gone_is_no_problem_of_the_program() {
    let fixture = sqlite().await;
    fixture.pool.close().await;
    let started = app(&fixture).start().await;
    assert!(matches!(started, Err(AppError::Database(_))));
}
