use std::time::Duration;

use outbox_runtime::Error;
use outbox_runtime::prelude::*;
use outbox_tests::bank::{Account, BankDb, BellRang, SCHEMA, id};
use outbox_tests::{Fixture, on_both_databases};

on_both_databases!(
    a_change_and_its_events_commit_together,
    a_rollback_and_a_drop_leave_nothing,
    cancelled_units_leave_nothing_or_everything,
    one_refused_row_takes_back_all,
    events_raised_after_the_last_save_are_not_lost,
    a_failed_step_forbids_the_commit,
    sql_of_the_user_is_in_the_same_transaction,
    a_removed_aggregate_sends_its_last_event,
    a_joined_transaction_decides,
    a_joined_transaction_never_has_a_change_without_its_event,
    an_added_aggregate_can_be_saved_again_in_the_same_unit,
);

async fn bank<DB: BankDb>(fixture: &Fixture<DB>, accounts: &[&str]) {
    fixture.run_sql(SCHEMA).await;
    for account in accounts {
        let mut uow = fixture.outbox.begin(MessageContext::new()).await.unwrap();
        uow.add(&mut Account::silent(account)).await.unwrap();
        uow.commit().await.unwrap();
    }
}

async fn a_change_and_its_events_commit_together<DB: BankDb>(fixture: Fixture<DB>) {
    bank(&fixture, &["a"]).await;
    let mut uow = fixture.outbox.begin(MessageContext::new()).await.unwrap();
    let mut account = uow.get::<Account>(&id("a")).await.unwrap();
    assert_eq!(account.root().version(), 1, "a silent insert is version 1");
    account.deposit(5);
    account.deposit(7);
    account.deposit(11);
    uow.save(&mut account).await.unwrap();
    assert_eq!(fixture.events().await, 0, "nothing before the commit");
    uow.commit().await.unwrap();

    assert_eq!(fixture.number("SELECT cents FROM account").await, 23);
    assert_eq!(fixture.number("SELECT version FROM account").await, 4);
    let sequences = "SELECT CAST(sequence AS TEXT) FROM outbox_message ORDER BY id";
    assert_eq!(fixture.texts(sequences).await, ["2", "3", "4"]);
    assert_eq!(account.root().version(), 4);
}

async fn a_rollback_and_a_drop_leave_nothing<DB: BankDb>(fixture: Fixture<DB>) {
    bank(&fixture, &["a"]).await;
    for n in 0..100 {
        let mut uow = fixture.outbox.begin(MessageContext::new()).await.unwrap();
        let mut account = uow.get::<Account>(&id("a")).await.unwrap();
        account.deposit(1);
        uow.save(&mut account).await.unwrap();
        if n % 2 == 0 {
            uow.connection().await.unwrap();
        }
        if n % 3 == 0 {
            uow.rollback().await.unwrap();
        }
    }
    assert_eq!(fixture.events().await, 0);
    assert_eq!(fixture.number("SELECT version FROM account").await, 1);
}

/// Each unit is given up after another number of polls, so that every await is hit.
async fn cancelled_units_leave_nothing_or_everything<DB: BankDb>(fixture: Fixture<DB>) {
    bank(&fixture, &["a"]).await;
    for n in 0..300_u64 {
        let work = async {
            let mut uow = fixture.outbox.begin(MessageContext::new()).await?;
            let mut account = uow.get::<Account>(&id("a")).await?;
            account.deposit(1);
            uow.save(&mut account).await?;
            if n % 2 == 0 {
                uow.connection().await?;
            }
            uow.commit().await
        };
        // From nothing to enough on a busy machine too.
        let limit = Duration::from_micros(n * n);
        // Cut off or done: both are fine. A commit that was cut off may be under way, and comes
        // before one that has loaded the state before it.
        match tokio::time::timeout(limit, work).await {
            Ok(Ok(())) | Err(_) | Ok(Err(Error::VersionConflict { .. })) => {}
            Ok(Err(error)) => panic!("{error:?}"),
        }
    }
    let events = fixture.events().await;
    assert!(events > 0, "some must have had time enough");
    assert_eq!(fixture.number("SELECT cents FROM account").await, events);
    assert_eq!(
        fixture.number("SELECT version - 1 FROM account").await,
        events
    );
}

async fn one_refused_row_takes_back_all<DB: BankDb>(fixture: Fixture<DB>) {
    bank(&fixture, &["a", "b", "c"]).await;
    for loser in ["a", "b", "c"] {
        let mut uow = fixture.outbox.begin(MessageContext::new()).await.unwrap();
        let mut all = uow
            .get_many::<Account>(&[id("c"), id("a"), id("b")])
            .await
            .unwrap();
        assert_eq!(all[0].id(), &id("c"), "in the order of the ids");
        fixture
            .run_sql(&format!(
                "UPDATE account SET version = version + 1 WHERE id = '{loser}'"
            ))
            .await;
        for account in &mut all {
            account.deposit(1);
            uow.save(account).await.unwrap();
        }
        let error = uow.commit().await.unwrap_err();
        let Error::VersionConflict { aggregate_id, .. } = &error else {
            panic!("{error:?}");
        };
        assert_eq!(aggregate_id, loser);
        assert!(error.is_version_conflict() && error.is_transient());
    }
    let mut uow = fixture.outbox.begin(MessageContext::new()).await.unwrap();
    let mut known = uow.get::<Account>(&id("a")).await.unwrap();
    known.deposit(1);
    uow.save(&mut known).await.unwrap();
    uow.add(&mut Account::open("b")).await.unwrap();
    let error = uow.commit().await.unwrap_err();
    assert!(
        matches!(&error, Error::AlreadyExists { aggregate_id, .. } if aggregate_id == "b"),
        "{error:?}"
    );
    assert_eq!(
        fixture
            .number("SELECT CAST(sum(cents) AS BIGINT) FROM account")
            .await,
        0
    );
    assert_eq!(fixture.events().await, 0);
}

async fn events_raised_after_the_last_save_are_not_lost<DB: BankDb>(fixture: Fixture<DB>) {
    bank(&fixture, &["a"]).await;
    let mut uow = fixture.outbox.begin(MessageContext::new()).await.unwrap();
    let mut account = uow.get::<Account>(&id("a")).await.unwrap();
    account.deposit(1);
    uow.save(&mut account).await.unwrap();
    account.deposit(1);
    drop(account);
    let error = uow.commit().await.unwrap_err();
    assert!(
        matches!(&error, Error::UnsavedEvents { count: 1, .. }),
        "{error:?}"
    );
    assert_eq!(fixture.events().await, 0);
}

async fn a_failed_step_forbids_the_commit<DB: BankDb>(fixture: Fixture<DB>) {
    bank(&fixture, &["a"]).await;
    let mut uow = fixture.outbox.begin(MessageContext::new()).await.unwrap();
    uow.raise(BellRang { times: 1 }).unwrap();
    let mut stale = uow.get::<Account>(&id("a")).await.unwrap();
    fixture.run_sql("UPDATE account SET version = 9").await;
    stale.deposit(1);
    uow.save(&mut stale).await.unwrap();
    // The transaction that the connection opens writes the row, which is refused.
    let refused = uow.connection().await.map(drop).unwrap_err();
    assert!(refused.is_version_conflict(), "{refused:?}");
    let error = uow.commit().await.unwrap_err();
    assert!(matches!(error, Error::MustRollBack), "{error:?}");
    assert_eq!(fixture.events().await, 0);
}

async fn sql_of_the_user_is_in_the_same_transaction<DB: BankDb>(fixture: Fixture<DB>)
where
    for<'c> &'c mut DB::Connection: sqlx::Executor<'c, Database = DB>,
{
    bank(&fixture, &["a"]).await;
    fixture.run_sql("CREATE TABLE note (text TEXT)").await;
    for keep in [false, true] {
        let mut uow = fixture.outbox.begin(MessageContext::new()).await.unwrap();
        let mut account = uow.get::<Account>(&id("a")).await.unwrap();
        account.deposit(1);
        uow.save(&mut account).await.unwrap();
        let connection = uow.connection().await.unwrap();
        // It sees the saved change.
        sqlx::Executor::execute(
            &mut *connection,
            "INSERT INTO note SELECT 'kept' FROM account WHERE cents = 1",
        )
        .await
        .unwrap();
        if keep {
            uow.commit().await.unwrap();
        } else {
            drop(uow);
        }
        let notes = fixture.number("SELECT count(*) FROM note").await;
        assert_eq!(
            (notes, fixture.events().await),
            if keep { (1, 1) } else { (0, 0) }
        );
    }
}

async fn a_removed_aggregate_sends_its_last_event<DB: BankDb>(fixture: Fixture<DB>) {
    bank(&fixture, &["a"]).await;
    let mut uow = fixture.outbox.begin(MessageContext::new()).await.unwrap();
    let mut account = uow.get::<Account>(&id("a")).await.unwrap();
    account.close();
    uow.remove(&mut account).await.unwrap();
    uow.commit().await.unwrap();
    assert_eq!(fixture.number("SELECT count(*) FROM account").await, 0);
    let types = fixture.texts("SELECT event_type FROM outbox_message").await;
    assert_eq!(types, ["account.closed"]);

    let mut uow = fixture.outbox.begin(MessageContext::new()).await.unwrap();
    assert!(uow.find::<Account>(&id("a")).await.unwrap().is_none());
    let error = uow.get::<Account>(&id("a")).await.unwrap_err();
    assert!(matches!(error, Error::NotFound { .. }), "{error:?}");
    let error = uow.save(&mut Account::open("x")).await.unwrap_err();
    assert!(matches!(error, Error::NotStored { .. }), "{error:?}");
}

async fn a_joined_transaction_decides<DB: BankDb>(fixture: Fixture<DB>) {
    fixture.run_sql(SCHEMA).await;
    for keep in [false, true] {
        let mut transaction = fixture.pool.begin().await.unwrap();
        let mut uow = fixture
            .outbox
            .join(&mut transaction, MessageContext::new())
            .await
            .unwrap();
        uow.add(&mut Account::open("a")).await.unwrap();
        uow.commit().await.unwrap();
        if keep {
            transaction.commit().await.unwrap();
        } else {
            transaction.rollback().await.unwrap();
        }
        assert_eq!(fixture.events().await, i64::from(keep));
    }
}

/// The user may commit after a unit of work that was given up halfway.
async fn a_joined_transaction_never_has_a_change_without_its_event<DB: BankDb>(
    fixture: Fixture<DB>,
) {
    fixture.run_sql(SCHEMA).await;
    let mut transaction = fixture.pool.begin().await.unwrap();
    let mut uow = fixture
        .outbox
        .join(&mut transaction, MessageContext::new())
        .await
        .unwrap();
    uow.add(&mut Account::open("a")).await.unwrap();
    uow.connection().await.unwrap();
    uow.add(&mut Account::open("b")).await.unwrap();
    drop(uow);
    transaction.commit().await.unwrap();
    let stored = fixture.texts("SELECT id FROM account").await;
    let told = fixture
        .texts("SELECT aggregate_id FROM outbox_message")
        .await;
    assert_eq!((stored, told), (vec!["a".to_owned()], vec!["a".to_owned()]));

    let mut connection = fixture.pool.acquire().await.unwrap();
    let refused = fixture
        .outbox
        .join(&mut connection, MessageContext::new())
        .await;
    assert!(matches!(refused, Err(Error::NotInTransaction)));
}

async fn an_added_aggregate_can_be_saved_again_in_the_same_unit<DB: BankDb>(fixture: Fixture<DB>) {
    fixture.run_sql(SCHEMA).await;
    let mut uow = fixture.outbox.begin(MessageContext::new()).await.unwrap();
    let mut account = Account::open("a");
    uow.add(&mut account).await.unwrap();
    let mut again = uow.get::<Account>(&id("a")).await.unwrap();
    again.deposit(3);
    uow.save(&mut again).await.unwrap();
    again.deposit(4);
    uow.save(&mut again).await.unwrap();
    uow.commit().await.unwrap();
    assert_eq!(fixture.number("SELECT cents FROM account").await, 7);
    assert_eq!(fixture.number("SELECT version FROM account").await, 3);
    assert_eq!(fixture.events().await, 3);
}
