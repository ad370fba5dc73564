use outbox_runtime::Error;
use outbox_runtime::prelude::*;
use outbox_tests::bank::{Account, AccountId, BankDb, BellRang, SCHEMA, id};
use outbox_tests::{Fixture, on_both_databases};

on_both_databases!(
    thousands_of_aggregates_commit_together,
    a_hundred_thousand_events_commit_together,
);

const ACCOUNTS: usize = 2_500;

/// More than one statement can hold, on any database.
async fn thousands_of_aggregates_commit_together<DB: BankDb>(fixture: Fixture<DB>) {
    fixture.run_sql(SCHEMA).await;
    let names: Vec<String> = (0..ACCOUNTS).map(|n| format!("account-{n}")).collect();
    let ids: Vec<AccountId> = names.iter().map(|name| id(name)).collect();
    let mut uow = fixture.outbox.begin(MessageContext::new()).await.unwrap();
    for name in &names {
        uow.add(&mut Account::open(name)).await.unwrap();
    }
    uow.commit().await.unwrap();
    let all = i64::try_from(ACCOUNTS).unwrap();
    assert_eq!(fixture.events().await, all);

    // Another unit of work changes one of them meanwhile: then none is changed.
    for rival in [0, ACCOUNTS / 2, ACCOUNTS - 1] {
        let mut uow = fixture.outbox.begin(MessageContext::new()).await.unwrap();
        let mut accounts = uow.get_many::<Account>(&ids).await.unwrap();
        fixture
            .run_sql(&format!(
                "UPDATE account SET version = version + 1 WHERE id = '{}'",
                names[rival]
            ))
            .await;
        let work = async {
            for account in &mut accounts {
                account.deposit(1);
                uow.save(account).await?;
            }
            uow.commit().await
        };
        let error: Error = work.await.unwrap_err();
        assert!(error.is_version_conflict(), "{error:?}");
        let cents = "SELECT CAST(sum(cents) AS BIGINT) FROM account";
        assert_eq!(fixture.number(cents).await, 0);
        assert_eq!(fixture.events().await, all);
    }
}

async fn a_hundred_thousand_events_commit_together<DB: BankDb>(fixture: Fixture<DB>) {
    let mut uow = fixture.outbox.begin(MessageContext::new()).await.unwrap();
    for times in 0..100_000 {
        uow.raise(BellRang { times }).unwrap();
    }
    uow.commit().await.unwrap();
    assert_eq!(fixture.events().await, 100_000);
}
