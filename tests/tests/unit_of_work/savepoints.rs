use outbox_runtime::Error;
use outbox_runtime::prelude::*;
use outbox_tests::bank::{Account, BankDb, BellRang, SCHEMA, id};
use outbox_tests::{Fixture, on_both_databases};

on_both_databases!(
    what_came_after_a_savepoint_goes_and_the_rest_stays,
    savepoints_nest_and_close,
    a_savepoint_mends_a_refused_write,
    a_savepoint_of_another_unit_of_work_is_refused,
);

async fn what_came_after_a_savepoint_goes_and_the_rest_stays<DB: BankDb>(fixture: Fixture<DB>) {
    fixture.run_sql(SCHEMA).await;
    let mut uow = fixture.outbox.begin(MessageContext::new()).await.unwrap();
    uow.add(&mut Account::open("outer")).await.unwrap();
    let savepoint = uow.savepoint().await.unwrap();
    uow.add(&mut Account::open("inner")).await.unwrap();
    uow.raise(BellRang { times: 1 }).unwrap();
    uow.rollback_to(savepoint).await.unwrap();
    uow.raise(BellRang { times: 2 }).unwrap();
    uow.commit().await.unwrap();

    assert_eq!(fixture.texts("SELECT id FROM account").await, ["outer"]);
    let payloads = fixture
        .texts("SELECT CAST(payload AS TEXT) FROM outbox_message ORDER BY id")
        .await;
    assert_eq!(payloads, [r#"{"account_id":"outer"}"#, r#"{"times":2}"#]);
}

async fn savepoints_nest_and_close<DB: BankDb>(fixture: Fixture<DB>) {
    fixture.run_sql(SCHEMA).await;
    let mut uow = fixture.outbox.begin(MessageContext::new()).await.unwrap();
    let outer = uow.savepoint().await.unwrap();
    uow.add(&mut Account::open("a")).await.unwrap();
    let inner = uow.savepoint().await.unwrap();
    uow.add(&mut Account::open("b")).await.unwrap();
    let closed = uow.savepoint().await.unwrap();
    uow.release(inner).await.unwrap();
    let error = uow.rollback_to(closed).await.unwrap_err();
    assert!(matches!(error, Error::SavepointClosed), "{error:?}");
    uow.rollback_to(outer).await.unwrap();
    uow.raise(BellRang { times: 1 }).unwrap();
    uow.commit().await.unwrap();
    assert_eq!(fixture.number("SELECT count(*) FROM account").await, 0);
    assert_eq!(fixture.events().await, 1);
}

async fn a_savepoint_mends_a_refused_write<DB: BankDb>(fixture: Fixture<DB>) {
    fixture.run_sql(SCHEMA).await;
    let mut uow = fixture.outbox.begin(MessageContext::new()).await.unwrap();
    uow.add(&mut Account::open("a")).await.unwrap();
    uow.commit().await.unwrap();

    let mut uow = fixture.outbox.begin(MessageContext::new()).await.unwrap();
    uow.raise(BellRang { times: 1 }).unwrap();
    let savepoint = uow.savepoint().await.unwrap();
    uow.add(&mut Account::open("a")).await.unwrap();
    uow.add(&mut Account::open("b")).await.unwrap();
    let error = uow.connection().await.map(drop).unwrap_err();
    assert!(matches!(error, Error::AlreadyExists { .. }), "{error:?}");
    uow.rollback_to(savepoint).await.unwrap();
    let mut known = uow.get::<Account>(&id("a")).await.unwrap();
    known.deposit(1);
    uow.save(&mut known).await.unwrap();
    uow.commit().await.unwrap();
    let types = fixture
        .texts("SELECT event_type FROM outbox_message ORDER BY id")
        .await;
    assert_eq!(types, ["account.opened", "bell.rang", "account.deposited"]);
}

async fn a_savepoint_of_another_unit_of_work_is_refused<DB: BankDb>(fixture: Fixture<DB>) {
    fixture.run_sql(SCHEMA).await;
    let mut other = fixture.outbox.begin(MessageContext::new()).await.unwrap();
    let foreign = other.savepoint().await.unwrap();
    other.rollback().await.unwrap();

    let mut uow = fixture.outbox.begin(MessageContext::new()).await.unwrap();
    let own = uow.savepoint().await.unwrap();
    uow.add(&mut Account::open("a")).await.unwrap();
    let error = uow.rollback_to(foreign).await.unwrap_err();
    assert!(matches!(error, Error::SavepointClosed), "{error:?}");
    uow.release(own).await.unwrap();
    uow.commit().await.unwrap();
    assert_eq!(fixture.events().await, 1);
}
