use outbox_runtime::Error;
use outbox_runtime::prelude::*;
use outbox_tests::bank::{Account, SCHEMA};
use outbox_tests::{Fixture, sqlite};
use sqlx::Sqlite;

/// Statements that end the transaction in which they run, or that do so by failing.
const ENDINGS: [&str; 3] = [
    "INSERT OR ROLLBACK INTO account VALUES ('taken', 0, 1)",
    "ROLLBACK",
    "COMMIT",
];

async fn go_on_after(ending: &'static str, fixture: &Fixture<Sqlite>) -> Result<(), Error> {
    let mut uow = fixture.outbox.begin(MessageContext::new()).await?;
    let connection = uow.connection().await?;
    // Whether it succeeds does not matter to whom goes on regardless.
    let _ = sqlx::query(ending).execute(connection).await;
    uow.add(&mut Account::open("new")).await?;
    uow.commit().await
}

#[tokio::test]
async fn nothing_is_written_after_the_end_of_a_transaction_and_the_next_ones_work() {
    let fixture = sqlite().await;
    fixture.run_sql(SCHEMA).await;
    fixture
        .run_sql("INSERT INTO account VALUES ('taken', 0, 1)")
        .await;
    for ending in ENDINGS {
        let error = go_on_after(ending, &fixture).await.unwrap_err();
        assert!(error.is_transient(), "{ending}: {error:?}");
        assert_eq!(fixture.events().await, 0, "{ending}");
        assert_eq!(fixture.texts("SELECT id FROM account").await, ["taken"]);
    }
    for n in 0..20 {
        let mut uow = fixture.outbox.begin(MessageContext::new()).await.unwrap();
        uow.add(&mut Account::open(&n.to_string())).await.unwrap();
        uow.commit().await.unwrap();
    }
    assert_eq!(fixture.events().await, 20);
}
