use std::time::Duration;

use outbox_runtime::app::App;
use outbox_runtime::prelude::*;
use outbox_runtime::retention::{Cleaner, Keep, Removed, Retention};
use outbox_tests::bank::{BankDb, BellRang, Opened, id};
use outbox_tests::{Fixture, RecordingPublisher, RunningRelay, insert_events, on_both_databases};

on_both_databases!(
    only_what_is_under_every_position_goes,
    age_and_floor_both_keep,
    one_instance_cleans_at_a_time,
    an_app_cleans_when_it_is_told,
);

const DAY: Duration = Duration::from_secs(24 * 3600);
const NONE: Duration = Duration::ZERO;

fn all(keep: Keep) -> Retention {
    Retention::new()
        .outbox(keep)
        .journal(keep)
        .inbox(keep)
        .chunk(7)
        .pause(NONE)
}

async fn clean<DB: BankDb>(fixture: &Fixture<DB>, retention: Retention) -> Removed {
    let cleaner = Cleaner::new(fixture.outbox.clone(), retention).unwrap();
    cleaner.clean_once().await.unwrap()
}

async fn publish_all<DB: BankDb>(fixture: &Fixture<DB>, events: usize) {
    let publisher = RecordingPublisher::new();
    let relay = RunningRelay::start(&fixture.outbox, &publisher);
    publisher.wait_for(events).await;
    relay.stop().await;
}

async fn handle<DB: BankDb>(fixture: &Fixture<DB>, keys: std::ops::Range<i64>) {
    let message_id = if DB::NAME == "SQLite" {
        "randomblob(16)"
    } else {
        "gen_random_uuid()"
    };
    for key in keys {
        let sql = format!(
            "INSERT INTO inbox_message (consumer, idempotency_key, message_id, event_type) \
             VALUES ('c', '{key}', {message_id}, 'e')"
        );
        fixture.run_sql(&sql).await;
    }
}

async fn rows<DB: BankDb>(fixture: &Fixture<DB>, table: &str) -> i64 {
    fixture
        .number(&format!("SELECT count(*) FROM {table}"))
        .await
}

async fn only_what_is_under_every_position_goes<DB: BankDb>(fixture: Fixture<DB>) {
    for n in 0..20 {
        fixture.run_sql(&insert_events(&format!("a{n}"), [1])).await;
    }
    tokio::time::sleep(Duration::from_millis(10)).await;
    let keep = Keep::for_age(NONE);
    assert_eq!(clean(&fixture, all(keep)).await, Removed::default());
    publish_all(&fixture, 20).await;
    // One shard that lags is enough to keep everything behind it.
    fixture
        .run_sql("UPDATE outbox_shard SET position = 12 WHERE shard = 3")
        .await;
    assert_eq!(clean(&fixture, all(keep)).await.outbox, 12);
    assert_eq!(clean(&fixture, all(keep)).await.outbox, 0);
    assert_eq!(
        fixture.number("SELECT min(id) FROM outbox_message").await,
        13
    );
    publish_all(&fixture, 0).await;
    assert_eq!(rows(&fixture, "outbox_journal").await, 0);

    // A key is forgotten with its row.
    fixture
        .run_sql("UPDATE outbox_shard SET position = 20")
        .await;
    for _ in 0..2 {
        let mut uow = fixture.outbox.begin(MessageContext::new()).await.unwrap();
        uow.raise(Opened {
            account_id: id("a"),
        })
        .unwrap();
        uow.commit().await.unwrap();
        fixture
            .run_sql("UPDATE outbox_shard SET position = 1000")
            .await;
        tokio::time::sleep(Duration::from_millis(10)).await;
        assert!(clean(&fixture, all(keep)).await.outbox > 0);
    }
    assert_eq!(rows(&fixture, "outbox_message").await, 0);
}

async fn age_and_floor_both_keep<DB: BankDb>(fixture: Fixture<DB>) {
    for n in 0..30 {
        fixture.run_sql(&insert_events(&format!("a{n}"), [1])).await;
    }
    handle(&fixture, 0..30).await;
    publish_all(&fixture, 30).await;
    tokio::time::sleep(Duration::from_millis(10)).await;
    assert_eq!(
        clean(&fixture, all(Keep::for_age(DAY))).await,
        Removed::default()
    );
    let forever = Keep::for_age(Duration::MAX).at_least(u32::MAX);
    assert_eq!(clean(&fixture, all(forever)).await, Removed::default());
    let many = Keep::for_age(NONE).at_least(31);
    assert_eq!(clean(&fixture, all(many)).await, Removed::default());

    let removed = clean(&fixture, all(Keep::for_age(NONE).at_least(9)).archive()).await;
    assert_eq!(
        (removed.outbox, rows(&fixture, "outbox_message").await),
        (21, 9)
    );
    // Rows of one moment go or stay together, so a few more may stay.
    let left = rows(&fixture, "inbox_message").await;
    assert!((9..30).contains(&left), "{left} left");
    assert_eq!(rows(&fixture, "inbox_message_archive").await, 30 - left);
    assert_eq!(removed.inbox, 30 - left.unsigned_abs());
    assert_eq!(
        fixture.number("SELECT min(id) FROM outbox_message").await,
        22
    );
    let archived =
        "SELECT count(*) FROM outbox_message_archive WHERE id <= 21 AND aggregate_id LIKE 'a%'";
    assert_eq!(fixture.number(archived).await, 21);

    let removed = clean(&fixture, all(Keep::for_age(NONE))).await;
    assert_eq!(removed.outbox, 9);
    assert_eq!(rows(&fixture, "outbox_message_archive").await, 21);
    assert_eq!(rows(&fixture, "inbox_message").await, 0);
    assert_eq!(rows(&fixture, "outbox_journal").await, 0);
    assert!(Cleaner::new(fixture.outbox.clone(), Retention::new().chunk(0)).is_err());
    assert!(Cleaner::new(fixture.outbox.clone(), Retention::new().chunk(10_001)).is_err());
}

async fn one_instance_cleans_at_a_time<DB: BankDb>(fixture: Fixture<DB>) {
    handle(&fixture, 0..5).await;
    let other = if DB::NAME == "SQLite" {
        "UPDATE outbox_cleaner SET owner = randomblob(16), lease_until = 9000000000000"
    } else {
        "UPDATE outbox_cleaner SET owner = gen_random_uuid(), lease_until = now() + interval '1 day'"
    };
    fixture.run_sql(other).await;
    let often = || all(Keep::for_age(NONE)).interval(Duration::from_millis(5));
    let cleaner = Cleaner::new(fixture.outbox.clone(), often()).unwrap();
    cleaner
        .run_until(tokio::time::sleep(Duration::from_millis(200)))
        .await;
    assert_eq!(
        rows(&fixture, "inbox_message").await,
        5,
        "another has the lease"
    );
    fixture
        .run_sql("UPDATE outbox_cleaner SET lease_until = NULL, owner = NULL")
        .await;
    let is_empty = async {
        while rows(&fixture, "inbox_message").await > 0 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    cleaner.run_until(is_empty).await;
    let given_back = "SELECT count(*) FROM outbox_cleaner WHERE owner IS NULL";
    assert_eq!(fixture.number(given_back).await, 1);
}

async fn an_app_cleans_when_it_is_told<DB: BankDb>(fixture: Fixture<DB>) {
    let app = App::new(fixture.outbox.clone())
        .publisher(RecordingPublisher::new())
        .without_consumers()
        .without_table_check::<outbox_tests::bank::Account>()
        .retention(all(Keep::for_age(NONE)).interval(Duration::from_millis(10)));
    let running = app.start().await.unwrap();
    for times in 0..10 {
        let mut uow = fixture.outbox.begin(MessageContext::new()).await.unwrap();
        uow.raise(BellRang { times }).unwrap();
        uow.commit().await.unwrap();
    }
    let gone = async {
        while rows(&fixture, "outbox_message").await > 0 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), gone)
        .await
        .expect("the events go once they are published");
    assert_eq!(running.counts().relay.published, 10);
    running.shutdown().await.unwrap();
}
