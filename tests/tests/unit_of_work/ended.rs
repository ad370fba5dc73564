use outbox_runtime::Error;
use outbox_runtime::prelude::*;
use outbox_tests::bank::{Account, BankDb, BellRang, SCHEMA};
use outbox_tests::{Fixture, on_both_databases};
use sqlx::Executor;

on_both_databases!(nothing_is_written_after_the_end_of_a_transaction_and_the_next_ones_work);

/// Statements that end the transaction in which they run, or that do so by failing.
fn endings(database: &str) -> &'static [&'static str] {
    match database {
        "SQLite" => &[
            "INSERT OR ROLLBACK INTO account VALUES ('taken', 0, 1)",
            "ROLLBACK",
            "COMMIT",
        ],
        _ => &[
            "INSERT INTO account VALUES ('taken', 0, 1)",
            "ROLLBACK",
            "COMMIT",
        ],
    }
}

/// How a unit of work goes on after the statement.
#[derive(Debug, Clone, Copy)]
enum GoOn {
    Add,
    Raise,
    Savepoint,
    Nothing,
}

async fn go_on_after<DB: BankDb>(
    fixture: &Fixture<DB>,
    ending: &'static str,
    how: GoOn,
) -> Result<(), Error>
where
    for<'c> &'c mut DB::Connection: Executor<'c, Database = DB>,
{
    let mut uow = fixture.outbox.begin(MessageContext::new()).await?;
    let connection = uow.connection().await?;
    // Whether it succeeds does not matter to whom goes on regardless.
    let _ = Executor::execute(&mut *connection, ending).await;
    match how {
        GoOn::Add => uow.add(&mut Account::open("new")).await?,
        GoOn::Raise => uow.raise(BellRang { times: 1 })?,
        GoOn::Savepoint => {
            let savepoint = uow.savepoint().await?;
            uow.add(&mut Account::open("new")).await?;
            uow.release(savepoint).await?;
        }
        GoOn::Nothing => {}
    }
    uow.commit().await
}

async fn nothing_is_written_after_the_end_of_a_transaction_and_the_next_ones_work<DB: BankDb>(
    fixture: Fixture<DB>,
) where
    for<'c> &'c mut DB::Connection: Executor<'c, Database = DB>,
{
    fixture.run_sql(SCHEMA).await;
    fixture
        .run_sql("INSERT INTO account VALUES ('taken', 0, 1)")
        .await;
    for ending in endings(DB::NAME) {
        for how in [GoOn::Add, GoOn::Raise, GoOn::Savepoint, GoOn::Nothing] {
            let error = go_on_after(&fixture, ending, how).await.unwrap_err();
            assert!(error.is_transient(), "{ending}, {how:?}: {error:?}");
            assert_eq!(fixture.events().await, 0, "{ending}, {how:?}");
            assert_eq!(fixture.texts("SELECT id FROM account").await, ["taken"]);
        }
    }
    for n in 0..20 {
        let mut uow = fixture.outbox.begin(MessageContext::new()).await.unwrap();
        uow.add(&mut Account::open(&n.to_string())).await.unwrap();
        uow.commit().await.unwrap();
    }
    assert_eq!(fixture.events().await, 20);
}
