use std::time::Duration;

use outbox_runtime::Error;
use outbox_runtime::prelude::*;
use outbox_tests::bank::{Account, BankDb, BellRang, Deposited, SCHEMA, id};
use outbox_tests::{Fixture, RecordingPublisher, RunningRelay, on_both_databases};
use time::OffsetDateTime;

on_both_databases!(
    it_is_published_when_it_is_due_with_its_own_envelope,
    the_time_decides_the_order_and_the_future_waits,
    it_comes_with_the_commit_or_not_at_all,
    many_are_moved_once_by_relays_that_crash,
    another_processs_event_is_found_by_polling,
    names_of_ones_own_are_kept_apart,
    a_time_that_no_database_can_hold_is_refused,
);

const SOON: Duration = Duration::from_millis(300);
const HOUR: Duration = Duration::from_secs(3600);
const SCHEDULED: &str = "SELECT count(*) FROM outbox_scheduled";

async fn it_is_published_when_it_is_due_with_its_own_envelope<DB: BankDb>(fixture: Fixture<DB>) {
    let publisher = RecordingPublisher::new();
    let relay = RunningRelay::start(&fixture.outbox, &publisher);
    let traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    let context = MessageContext::new()
        .correlation_id("order 7")
        .causation_id("command 1")
        .traceparent(traceparent)
        .header("tenant", "blue");
    let before = OffsetDateTime::now_utc();
    let mut uow = fixture.outbox.begin(context).await.unwrap();
    uow.raise_after(BellRang { times: 7 }, SOON).unwrap();
    uow.commit().await.unwrap();
    let of_scheduled = if DB::NAME == "SQLite" {
        "SELECT lower(hex(message_id)) FROM outbox_scheduled"
    } else {
        "SELECT replace(message_id::text, '-', '') FROM outbox_scheduled"
    };
    let message_ids = fixture.texts(of_scheduled).await;

    publisher.wait_for(1).await;
    relay.stop().await;
    let taken = publisher.taken();
    let metadata = &taken[0].metadata;
    if let Some(message_id) = message_ids.first() {
        assert_eq!(
            &metadata.message_id.to_string().replace('-', ""),
            message_id
        );
    }
    assert_eq!(metadata.event_type, "bell.rang");
    assert_eq!(metadata.correlation_id, "order 7");
    assert_eq!(metadata.causation_id.as_deref(), Some("command 1"));
    assert_eq!(metadata.traceparent.as_deref(), Some(traceparent));
    assert_eq!(metadata.headers["tenant"], "blue");
    assert_eq!(metadata.producer, "test");
    assert_eq!(metadata.aggregate, None);
    assert_eq!(taken[0].payload, r#"{"times":7}"#);
    let waited = metadata.occurred_at - before;
    assert!(
        waited >= SOON - Duration::from_millis(5),
        "it occurs when it is due: {waited}"
    );
    assert_eq!(fixture.number(SCHEDULED).await, 0);
    assert_eq!(fixture.events().await, 1);
}

async fn the_time_decides_the_order_and_the_future_waits<DB: BankDb>(fixture: Fixture<DB>) {
    let now = OffsetDateTime::now_utc();
    let mut uow = fixture.outbox.begin(MessageContext::new()).await.unwrap();
    uow.raise_after(BellRang { times: 4 }, HOUR).unwrap();
    uow.raise_at(BellRang { times: 3 }, now - HOUR).unwrap();
    uow.raise_at(BellRang { times: 2 }, now - 2 * HOUR).unwrap();
    let long_ago = OffsetDateTime::new_utc(time::Date::MIN, time::Time::MIDNIGHT);
    uow.raise_at(BellRang { times: 1 }, long_ago).unwrap();
    uow.commit().await.unwrap();
    assert_eq!(fixture.events().await, 0);

    let publisher = RecordingPublisher::new();
    let relay = RunningRelay::start(&fixture.outbox, &publisher);
    publisher.wait_for(3).await;
    relay.stop().await;
    let payloads = "SELECT CAST(payload AS TEXT) FROM outbox_message ORDER BY id";
    assert_eq!(
        fixture.texts(payloads).await,
        [r#"{"times":1}"#, r#"{"times":2}"#, r#"{"times":3}"#]
    );
    assert_eq!(fixture.number(SCHEDULED).await, 1);
    let occurred = &publisher.taken()[0].metadata.occurred_at;
    assert!(
        *occurred > now - HOUR,
        "not before it was raised: {occurred}"
    );
}

async fn it_comes_with_the_commit_or_not_at_all<DB: BankDb>(fixture: Fixture<DB>) {
    fixture.run_sql(SCHEMA).await;
    let begin = || fixture.outbox.begin(MessageContext::new());
    let mut dropped = begin().await.unwrap();
    dropped.raise_after(BellRang { times: 1 }, HOUR).unwrap();
    dropped.connection().await.unwrap();
    dropped.rollback().await.unwrap();
    assert_eq!(fixture.number(SCHEDULED).await, 0);

    let mut uow = begin().await.unwrap();
    uow.raise_after(BellRang { times: 1 }, HOUR).unwrap();
    let savepoint = uow.savepoint().await.unwrap();
    uow.raise_after(BellRang { times: 2 }, HOUR).unwrap();
    let inner = uow.savepoint().await.unwrap();
    uow.raise_after(BellRang { times: 3 }, HOUR).unwrap();
    uow.rollback_to(inner).await.unwrap();
    uow.rollback_to(savepoint).await.unwrap();
    uow.raise_after(BellRang { times: 4 }, HOUR).unwrap();
    uow.commit().await.unwrap();
    let payloads = "SELECT CAST(payload AS TEXT) FROM outbox_scheduled ORDER BY id";
    assert_eq!(
        fixture.texts(payloads).await,
        [r#"{"times":1}"#, r#"{"times":4}"#]
    );

    // A conflict takes the scheduled event back with the rest, with one row and with several.
    let mut uow = begin().await.unwrap();
    for name in ["a", "b"] {
        uow.add(&mut Account::silent(name)).await.unwrap();
    }
    uow.commit().await.unwrap();
    for names in [&["a"][..], &["a", "b"][..]] {
        let mut late = begin().await.unwrap();
        let mut accounts = Vec::new();
        for name in names {
            accounts.push(late.get::<Account>(&id(name)).await.unwrap());
        }
        let mut early = begin().await.unwrap();
        let mut account = early
            .get::<Account>(&id(names[names.len() - 1]))
            .await
            .unwrap();
        account.deposit_silently(1);
        early.save(&mut account).await.unwrap();
        early.commit().await.unwrap();
        for account in &mut accounts {
            account.deposit(1);
            late.save(account).await.unwrap();
        }
        late.raise_after(BellRang { times: 5 }, HOUR).unwrap();
        assert!(late.commit().await.unwrap_err().is_version_conflict());
    }
    assert_eq!(fixture.number(SCHEDULED).await, 2);
    assert_eq!(fixture.events().await, 0);

    // All three kinds in one commit.
    let mut uow = begin().await.unwrap();
    let mut account = uow.get::<Account>(&id("a")).await.unwrap();
    account.deposit(1);
    uow.save(&mut account).await.unwrap();
    uow.raise(BellRang { times: 6 }).unwrap();
    uow.raise_after(BellRang { times: 7 }, HOUR).unwrap();
    uow.commit().await.unwrap();
    assert_eq!(fixture.number(SCHEDULED).await, 3);
    assert_eq!(fixture.events().await, 2);

    // In a transaction of the user's.
    let mut transaction = DB::begin(&fixture.pool).await.unwrap();
    let mut uow = fixture
        .outbox
        .join(&mut *transaction, MessageContext::new())
        .await
        .unwrap();
    uow.raise_after(BellRang { times: 8 }, HOUR).unwrap();
    uow.commit().await.unwrap();
    transaction.commit().await.unwrap();
    assert_eq!(fixture.number(SCHEDULED).await, 4);
}

async fn many_are_moved_once_by_relays_that_crash<DB: BankDb>(fixture: Fixture<DB>) {
    const EVENTS: u32 = 5_000;
    let mut uow = fixture.outbox.begin(MessageContext::new()).await.unwrap();
    for times in 0..EVENTS {
        let wait = Duration::from_millis(u64::from(times % 500));
        uow.raise_after(BellRang { times }, wait).unwrap();
    }
    uow.commit().await.unwrap();

    let publisher = RecordingPublisher::new();
    let steady = RunningRelay::start(&fixture.outbox, &publisher);
    for pause in 0..10 {
        let relay = RunningRelay::start(&fixture.outbox, &publisher);
        tokio::time::sleep(Duration::from_millis(10 * pause)).await;
        relay.crash().await;
    }
    publisher.wait_for(EVENTS as usize).await;
    steady.stop().await;
    assert_eq!(fixture.number(SCHEDULED).await, 0);
    assert_eq!(fixture.events().await, i64::from(EVENTS));
    let different = "SELECT count(DISTINCT CAST(payload AS TEXT)) FROM outbox_message";
    assert_eq!(fixture.number(different).await, i64::from(EVENTS));
}

async fn another_processs_event_is_found_by_polling<DB: BankDb>(fixture: Fixture<DB>) {
    let publisher = RecordingPublisher::new();
    let relay = RunningRelay::start(&fixture.outbox, &publisher);
    // It shares nothing with the relay's outbox but the database.
    let elsewhere = Outbox::new("elsewhere", fixture.pool.clone());
    for times in 1..=3 {
        let mut uow = elsewhere.begin(MessageContext::new()).await.unwrap();
        uow.raise_after(BellRang { times }, Duration::from_millis(20))
            .unwrap();
        uow.commit().await.unwrap();
        publisher.wait_for(times as usize).await;
    }
    relay.stop().await;
}

async fn names_of_ones_own_are_kept_apart<DB: BankDb>(fixture: Fixture<DB>) {
    let named = Outbox::builder("named", fixture.pool.clone())
        .prefix("named_")
        .build()
        .unwrap();
    named.migrate().await.unwrap();
    let event = || Deposited {
        account_id: id("a"),
        cents: 1,
    };
    let mut uow = named.begin(MessageContext::new()).await.unwrap();
    uow.raise_after(event(), Duration::ZERO).unwrap();
    uow.commit().await.unwrap();
    assert_eq!(fixture.number(SCHEDULED).await, 0);
    let publisher = RecordingPublisher::new();
    let relay = RunningRelay::start(&named, &publisher);
    publisher.wait_for(1).await;
    relay.stop().await;
    assert_eq!(
        fixture
            .number("SELECT count(*) FROM named_outbox_message")
            .await,
        1
    );
    assert_eq!(
        fixture
            .number("SELECT count(*) FROM named_outbox_scheduled")
            .await,
        0
    );
}

async fn a_time_that_no_database_can_hold_is_refused<DB: BankDb>(fixture: Fixture<DB>) {
    let mut uow = fixture.outbox.begin(MessageContext::new()).await.unwrap();
    let error = uow
        .raise_after(BellRang { times: 1 }, Duration::MAX)
        .unwrap_err();
    assert!(matches!(error, Error::TooFarAhead { .. }), "{error:?}");
    // It is no broken unit of work: nothing was staged.
    let far = OffsetDateTime::new_utc(time::Date::MAX, time::Time::MIDNIGHT);
    uow.raise_at(BellRang { times: 2 }, far).unwrap();
    let centuries = Duration::from_secs(900 * 365 * 24 * 3600);
    uow.raise_after(BellRang { times: 3 }, centuries).unwrap();
    uow.commit().await.unwrap();
    let publisher = RecordingPublisher::new();
    let relay = RunningRelay::start(&fixture.outbox, &publisher);
    let mut uow = fixture.outbox.begin(MessageContext::new()).await.unwrap();
    uow.raise_after(BellRang { times: 4 }, Duration::ZERO)
        .unwrap();
    uow.commit().await.unwrap();
    publisher.wait_for(1).await;
    relay.stop().await;
    assert_eq!(fixture.number(SCHEDULED).await, 2);
}
