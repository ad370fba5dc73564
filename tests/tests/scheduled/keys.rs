use std::time::Duration;

use outbox_runtime::prelude::*;
use outbox_runtime::{DomainEvent, Error};
use outbox_tests::bank::{BankDb, BellRang, Opened, id};
use outbox_tests::{Fixture, RecordingPublisher, RunningRelay, on_both_databases};

on_both_databases!(
    a_key_is_taken_by_what_is_stored_or_scheduled,
    cancelling_says_whether_it_was_in_time,
    a_cancellation_that_is_rolled_back_changes_nothing,
    what_the_unit_of_work_itself_scheduled_can_be_cancelled,
);

const HOUR: Duration = Duration::from_secs(3600);

fn opened(name: &str) -> Opened {
    Opened {
        account_id: id(name),
    }
}

fn key(name: &str) -> String {
    opened(name).business_key().unwrap().unwrap()
}

async fn store<DB: BankDb>(fixture: &Fixture<DB>, names: &[&str]) -> Result<(), Error> {
    let mut uow = fixture.outbox.begin(MessageContext::new()).await?;
    for name in names {
        uow.raise(opened(name))?;
    }
    uow.commit().await
}

async fn schedule<DB: BankDb>(fixture: &Fixture<DB>, names: &[&str]) -> Result<(), Error> {
    let mut uow = fixture.outbox.begin(MessageContext::new()).await?;
    for name in names {
        uow.raise_after(opened(name), HOUR)?;
    }
    uow.commit().await
}

async fn cancel<DB: BankDb>(fixture: &Fixture<DB>, name: &str) -> bool {
    let mut uow = fixture.outbox.begin(MessageContext::new()).await.unwrap();
    let cancelled = uow.cancel_scheduled::<Opened>(&key(name)).await.unwrap();
    uow.commit().await.unwrap();
    cancelled
}

fn assert_taken(result: Result<(), Error>, name: &str) {
    let error = result.unwrap_err();
    let Error::DuplicateEvent { keys, .. } = &error else {
        panic!("{error:?}");
    };
    assert!(keys.contains(&("account.opened".to_owned(), key(name))));
}

async fn a_key_is_taken_by_what_is_stored_or_scheduled<DB: BankDb>(fixture: Fixture<DB>) {
    store(&fixture, &["stored", "stored too"]).await.unwrap();
    schedule(&fixture, &["later", "later too"]).await.unwrap();
    assert_taken(schedule(&fixture, &["free", "later"]).await, "later");
    assert_taken(
        schedule(&fixture, &["free", "stored too"]).await,
        "stored too",
    );
    assert_taken(store(&fixture, &["free", "later too"]).await, "later too");
    assert_taken(store(&fixture, &["stored"]).await, "stored");

    // Both at once, in one statement or in two.
    for with_connection in [false, true] {
        let mut uow = fixture.outbox.begin(MessageContext::new()).await.unwrap();
        uow.raise_after(opened("both"), HOUR).unwrap();
        if with_connection {
            uow.connection().await.unwrap();
        }
        uow.raise(opened("both")).unwrap();
        assert_taken(uow.commit().await, "both");
    }

    // The same key of another event is another key.
    let mut uow = fixture.outbox.begin(MessageContext::new()).await.unwrap();
    uow.raise_after(BellRang { times: 1 }, HOUR).unwrap();
    uow.raise_after(BellRang { times: 1 }, HOUR).unwrap();
    uow.raise(BellRang { times: 1 }).unwrap();
    uow.commit().await.unwrap();

    assert_eq!(fixture.events().await, 3);
    let scheduled = "SELECT count(*) FROM outbox_scheduled";
    assert_eq!(fixture.number(scheduled).await, 4);

    // A cancelled one is free.
    assert!(cancel(&fixture, "later").await);
    store(&fixture, &["later"]).await.unwrap();
    assert!(cancel(&fixture, "later too").await);
    schedule(&fixture, &["later too"]).await.unwrap();
}

async fn cancelling_says_whether_it_was_in_time<DB: BankDb>(fixture: Fixture<DB>) {
    schedule(&fixture, &["a"]).await.unwrap();
    assert!(!cancel(&fixture, "b").await, "never scheduled");
    assert!(cancel(&fixture, "a").await);
    assert!(!cancel(&fixture, "a").await, "cancelled before");

    let mut uow = fixture.outbox.begin(MessageContext::new()).await.unwrap();
    uow.raise_after(opened("a"), Duration::ZERO).unwrap();
    uow.commit().await.unwrap();
    let publisher = RecordingPublisher::new();
    let relay = RunningRelay::start(&fixture.outbox, &publisher);
    publisher.wait_for(1).await;
    assert!(!cancel(&fixture, "a").await, "published before");
    relay.stop().await;
    assert_taken(schedule(&fixture, &["a"]).await, "a");
}

async fn a_cancellation_that_is_rolled_back_changes_nothing<DB: BankDb>(fixture: Fixture<DB>) {
    schedule(&fixture, &["a"]).await.unwrap();
    let mut uow = fixture.outbox.begin(MessageContext::new()).await.unwrap();
    assert!(uow.cancel_scheduled::<Opened>(&key("a")).await.unwrap());
    uow.rollback().await.unwrap();

    let mut uow = fixture.outbox.begin(MessageContext::new()).await.unwrap();
    let savepoint = uow.savepoint().await.unwrap();
    assert!(uow.cancel_scheduled::<Opened>(&key("a")).await.unwrap());
    uow.rollback_to(savepoint).await.unwrap();
    uow.commit().await.unwrap();
    assert!(cancel(&fixture, "a").await);
}

async fn what_the_unit_of_work_itself_scheduled_can_be_cancelled<DB: BankDb>(fixture: Fixture<DB>) {
    let mut uow = fixture.outbox.begin(MessageContext::new()).await.unwrap();
    uow.raise_after(opened("a"), HOUR).unwrap();
    assert!(uow.cancel_scheduled::<Opened>(&key("a")).await.unwrap());
    // To put it off: cancel it and schedule it anew, in one transaction.
    uow.raise_after(opened("a"), 2 * HOUR).unwrap();
    uow.commit().await.unwrap();
    assert_eq!(
        fixture
            .number("SELECT count(*) FROM outbox_scheduled")
            .await,
        1
    );
}
