use std::time::Duration;

use outbox_runtime::prelude::*;
use outbox_runtime::retention::{Cleaner, Keep, Retention};
use outbox_tests::bank::{Account, BankDb, SCHEMA, id};
use outbox_tests::{Fixture, RecordingPublisher, RunningRelay};

use super::in_one_thread;
use super::recording::Recording;

in_one_thread!(commits, what_retention_removes);

async fn open<DB: BankDb>(fixture: &Fixture<DB>, name: &str) {
    let mut uow = fixture.outbox.begin(MessageContext::new()).await.unwrap();
    let mut account = Account::open(name);
    account.deposit(1);
    uow.add(&mut account).await.unwrap();
    uow.commit().await.unwrap();
}

pub async fn commits<DB: BankDb>(fixture: Fixture<DB>) {
    let recording = Recording::start();
    fixture.run_sql(SCHEMA).await;
    for name in ["a", "b", "c"] {
        open(&fixture, name).await;
    }

    let mut slow = fixture.outbox.begin(MessageContext::new()).await.unwrap();
    let mut of_slow = slow.get::<Account>(&id("a")).await.unwrap();
    let mut fast = fixture.outbox.begin(MessageContext::new()).await.unwrap();
    let mut of_fast = fast.get::<Account>(&id("a")).await.unwrap();
    of_fast.deposit(1);
    fast.save(&mut of_fast).await.unwrap();
    fast.commit().await.unwrap();
    of_slow.deposit(1);
    slow.save(&mut of_slow).await.unwrap();
    assert!(slow.commit().await.unwrap_err().is_version_conflict());

    let mut twice = fixture.outbox.begin(MessageContext::new()).await.unwrap();
    twice.add(&mut Account::open("a")).await.unwrap();
    twice.commit().await.unwrap_err();

    let mut transaction = fixture.pool.begin().await.unwrap();
    let mut joined = fixture
        .outbox
        .join(&mut transaction, MessageContext::new())
        .await
        .unwrap();
    joined.add(&mut Account::open("d")).await.unwrap();
    joined.commit().await.unwrap();
    transaction.commit().await.unwrap();

    let given_up = fixture.outbox.begin(MessageContext::new()).await.unwrap();
    given_up.rollback().await.unwrap();

    let figures = recording.figures();
    let expected = [
        ("outcome=committed", 4),
        ("outcome=version_conflict", 1),
        ("outcome=permanent", 1),
        ("outcome=joined", 1),
    ];
    let counts = figures.counts_of("unit_of_work_commit_duration_seconds");
    assert_eq!(counts, expected.into());
    assert_eq!(figures.count("unit_of_work_events_total", ""), 7);
    assert_eq!(
        fixture.events().await,
        8,
        "one is the joined unit of work's"
    );
}

pub async fn what_retention_removes<DB: BankDb>(fixture: Fixture<DB>) {
    let recording = Recording::start();
    fixture.run_sql(SCHEMA).await;
    for n in 0..10 {
        open(&fixture, &format!("a{n}")).await;
    }
    let publisher = RecordingPublisher::new();
    let relay = RunningRelay::start(&fixture.outbox, &publisher);
    publisher.wait_for(20).await;
    relay.stop().await;
    let message_id = if DB::NAME == "SQLite" {
        "randomblob(16)"
    } else {
        "gen_random_uuid()"
    };
    for key in 0..5 {
        fixture
            .run_sql(&format!(
                "INSERT INTO inbox_message (consumer, idempotency_key, message_id, event_type) \
                 VALUES ('c', '{key}', {message_id}, 'e')"
            ))
            .await;
    }
    let journal = fixture.number("SELECT count(*) FROM outbox_journal").await;
    let nothing = Keep::for_age(Duration::ZERO);
    let retention = Retention::new()
        .outbox(nothing)
        .journal(nothing)
        .inbox(nothing)
        .chunk(3)
        .pause(Duration::ZERO);
    // Ages are above 0 only once the clock has moved on.
    tokio::time::sleep(Duration::from_millis(20)).await;
    let cleaner = Cleaner::new(fixture.outbox.clone(), retention).unwrap();
    let removed = cleaner.clean_once().await.unwrap();
    assert_eq!((removed.outbox, removed.inbox), (20, 5));
    let figures = recording.figures();
    let figure = |table: &str| figures.count("retention_removed_total", table);
    assert_eq!(figure("table=outbox"), 20);
    assert_eq!(figure("table=inbox"), 5);
    assert_eq!(figure("table=journal"), journal.unsigned_abs());
}
