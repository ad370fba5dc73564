use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use outbox_runtime::broker::PublishError;
use outbox_runtime::prelude::*;
use outbox_runtime::{Clock, Message};
use outbox_tests::bank::{BankDb, BellRang, Opened, id};
use outbox_tests::{Fixture, RecordingPublisher, RunningRelay, TestDatabase, insert_events, quick};

use sqlx::pool::PoolOptions;

use super::in_one_thread;
use super::recording::Recording;

in_one_thread!(
    what_is_published,
    a_broker_that_fails_for_a_while,
    a_circuit_that_opens,
    a_message_that_is_refused_for_good,
    leases_that_change_hands,
    leases_that_are_taken_away_or_renewed_late,
    scheduled_events,
    a_clock_that_is_wrong,
);

const POSITION: &str = "SELECT min(position) FROM outbox_shard";

async fn eventually<DB: TestDatabase>(fixture: &Fixture<DB>, sql: &str, expected: i64) {
    let reached = async {
        while fixture.number(sql).await != expected {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    let in_time = tokio::time::timeout(Duration::from_secs(60), reached).await;
    assert!(in_time.is_ok(), "{sql} is not {expected}");
}

async fn insert<DB: TestDatabase>(fixture: &Fixture<DB>, aggregates: usize, events: i64) {
    for aggregate in 0..aggregates {
        let insert = insert_events(&format!("a{aggregate}"), 1..=events);
        fixture.run_sql(&insert).await;
    }
}

pub async fn what_is_published<DB: TestDatabase>(fixture: Fixture<DB>) {
    let recording = Recording::start();
    insert(&fixture, 30, 10).await;
    let publisher = RecordingPublisher::new();
    let relay = RunningRelay::start(&fixture.outbox, &publisher);
    publisher.wait_for(300).await;
    relay.stop().await;
    let figures = recording.figures();
    assert_eq!(figures.count("relay_published_total", ""), 300);
    let calls = publisher.calls() as u64;
    assert_eq!(figures.count("relay_batches_total", ""), calls);
    let delays = figures.values("relay_occurred_to_published_seconds", "");
    assert_eq!(delays.len(), 300);
    assert!(delays.iter().all(|delay| (0.0..3600.0).contains(delay)));
    for (name, labels, expected) in [
        ("relay_lease_changes_total", "change=claimed", 64),
        ("relay_lease_changes_total", "change=handed_over", 64),
    ] {
        assert_eq!(figures.count(name, labels), expected, "{labels}");
    }
    assert_eq!(figures.sum("relay_lease_changes_total"), 128);
    assert_eq!(figures.gauge("relay_shards", ""), Some(0.0), "given up");
    for name in [
        "failures_total",
        "retries_total",
        "parked_total",
        "dead_total",
    ] {
        assert_eq!(figures.sum(&format!("relay_{name}")), 0, "{name}");
    }
}

/// With one aggregate nothing else gets through, so it is tried again in place.
pub async fn a_broker_that_fails_for_a_while<DB: TestDatabase>(fixture: Fixture<DB>) {
    let recording = Recording::start();
    insert(&fixture, 1, 10).await;
    let publisher = RecordingPublisher::new();
    let failures = Arc::new(AtomicU64::new(5));
    publisher.judge(move |_| {
        let left = failures.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |n| n.checked_sub(1));
        match left {
            Ok(_) => Err(PublishError::transient("not now")),
            Err(_) => Ok(()),
        }
    });
    let relay = RunningRelay::start(&fixture.outbox, &publisher);
    publisher.wait_for(10).await;
    relay.stop().await;
    let figures = recording.figures();
    assert_eq!(figures.count("relay_failures_total", "kind=transient"), 5);
    assert_eq!(figures.sum("relay_failures_total"), 5);
    assert_eq!(figures.count("relay_retries_total", ""), 5);
    assert_eq!(figures.count("relay_published_total", ""), 10);
    assert_eq!(figures.count("relay_parked_total", ""), 0);
    let calls = publisher.calls() as u64;
    assert_eq!(figures.count("relay_batches_total", ""), calls);
}

pub async fn a_circuit_that_opens<DB: TestDatabase>(fixture: Fixture<DB>) {
    let recording = Recording::start();
    insert(&fixture, 20, 5).await;
    let publisher = RecordingPublisher::new();
    publisher.go_down();
    let relay = RunningRelay::start_with(
        &fixture.outbox,
        &publisher,
        quick().batch_size(5).circuit_breaker(3),
    );
    let open = async {
        loop {
            let figures = recording.figures();
            if figures.gauge("relay_circuit_state", "") == Some(2.0) {
                return;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    let in_time = tokio::time::timeout(Duration::from_secs(60), open).await;
    assert!(in_time.is_ok(), "{:?}", recording.figures());
    publisher.accept();
    publisher.wait_for(100).await;
    relay.stop().await;
    let figures = recording.figures();
    assert_eq!(figures.count("relay_circuit_opened_total", ""), 1);
    assert_eq!(figures.count("relay_published_total", ""), 100);
    assert_eq!(
        figures.count("relay_failures_total", "kind=transient"),
        figures.count("relay_retries_total", "")
    );
    assert_eq!(figures.count("relay_dead_total", ""), 0);
}

pub async fn a_message_that_is_refused_for_good<DB: TestDatabase>(fixture: Fixture<DB>) {
    let recording = Recording::start();
    insert(&fixture, 10, 10).await;
    let publisher = RecordingPublisher::new();
    publisher.judge(|message: &Message| {
        let aggregate = message.metadata.aggregate.as_ref().unwrap();
        match (&*aggregate.aggregate_id, aggregate.sequence) {
            ("a3", 4) => Err(PublishError::permanent("refused")),
            _ => Ok(()),
        }
    });
    let relay = RunningRelay::start(&fixture.outbox, &publisher);
    publisher.wait_for(93).await;
    eventually(&fixture, POSITION, 100).await;
    // Two more of the aggregate come when it is parked already.
    fixture.run_sql(&insert_events("a3", 11..=12)).await;
    eventually(&fixture, "SELECT count(*) FROM outbox_parked", 9).await;
    relay.stop().await;
    let figures = recording.figures();
    assert_eq!(figures.count("relay_failures_total", "kind=permanent"), 1);
    assert_eq!(figures.sum("relay_failures_total"), 1);
    assert_eq!(figures.count("relay_retries_total", ""), 0);
    assert_eq!(figures.count("relay_parked_total", ""), 9);
    assert_eq!(figures.count("relay_dead_total", ""), 1);
    assert_eq!(figures.count("relay_published_total", ""), 93);
}

pub async fn leases_that_change_hands<DB: TestDatabase>(fixture: Fixture<DB>) {
    let recording = Recording::start();
    let publisher = RecordingPublisher::new();
    let owned = "SELECT count(*) FROM outbox_shard WHERE owner IS NOT NULL";
    let owners = "SELECT count(DISTINCT owner) FROM outbox_shard WHERE owner IS NOT NULL";
    let first = RunningRelay::start(&fixture.outbox, &publisher);
    eventually(&fixture, owned, 64).await;
    let second = RunningRelay::start(&fixture.outbox, &publisher);
    eventually(&fixture, owners, 2).await;
    let shares = "SELECT count(*) FROM (SELECT owner FROM outbox_shard WHERE owner IS NOT NULL
        GROUP BY owner HAVING count(*) = 32) AS shares";
    eventually(&fixture, shares, 2).await;
    first.stop().await;
    eventually(&fixture, owners, 1).await;
    // What the database shows is counted a moment later.
    let counted = async {
        while recording.figures().sum("relay_lease_changes_total") < 192 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    let in_time = tokio::time::timeout(Duration::from_secs(60), counted).await;
    assert!(in_time.is_ok(), "{:?}", recording.figures());
    let figures = recording.figures();
    let figure = |change| figures.count("relay_lease_changes_total", change);
    assert_eq!(figure("change=claimed"), 64 + 32 + 32);
    assert_eq!(figure("change=handed_over"), 32 + 32);
    assert_eq!(figures.sum("relay_lease_changes_total"), 192);
    assert_eq!(figures.gauge("relay_shards", ""), Some(64.0));
    second.stop().await;
    let figures = recording.figures();
    assert_eq!(
        figures.count("relay_lease_changes_total", "change=handed_over"),
        128
    );
}

pub async fn leases_that_are_taken_away_or_renewed_late<DB: TestDatabase>(fixture: Fixture<DB>) {
    let recording = Recording::start();
    let publisher = RecordingPublisher::new();
    let lease = Duration::from_millis(600);
    let relay = RunningRelay::start_with(&fixture.outbox, &publisher, quick().lease(lease));
    eventually(&fixture, "SELECT count(owner) FROM outbox_shard", 64).await;
    fixture
        .run_sql("UPDATE outbox_shard SET owner = NULL, epoch = epoch + 1")
        .await;
    eventually(&fixture, "SELECT count(owner) FROM outbox_shard", 64).await;

    // Nobody can renew while another transaction has the rows.
    let pool = PoolOptions::<DB>::new().max_connections(1);
    let pool = pool.connect(&fixture.url).await.unwrap();
    DB::run_sql(&pool, "BEGIN; UPDATE outbox_shard SET position = position").await;
    tokio::time::sleep(lease * 2).await;
    DB::run_sql(&pool, "ROLLBACK").await;
    let late = async {
        while recording
            .figures()
            .count("relay_lease_changes_total", "change=renewed_late")
            == 0
        {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    let in_time = tokio::time::timeout(Duration::from_secs(60), late).await;
    assert!(in_time.is_ok(), "{:?}", recording.figures());
    relay.stop().await;
    let figures = recording.figures();
    let figure = |change| figures.count("relay_lease_changes_total", change);
    assert_eq!(figure("change=claimed"), 128);
    assert_eq!(figure("change=lost"), 64);
    assert_eq!(figure("change=renewed_late"), 64);
    assert_eq!(figure("change=handed_over"), 64);
}

pub async fn scheduled_events<DB: BankDb>(fixture: Fixture<DB>) {
    let recording = Recording::start();
    let mut uow = fixture.outbox.begin(MessageContext::new()).await.unwrap();
    for times in 0..3 {
        uow.raise_after(BellRang { times }, Duration::ZERO).unwrap();
    }
    let opened = Opened {
        account_id: id("a"),
    };
    uow.raise_after(opened, Duration::ZERO).unwrap();
    uow.commit().await.unwrap();
    // As if it had been committed at the same moment.
    fixture
        .run_sql(
            "INSERT INTO outbox_message (event_type, business_key, payload) \
             VALUES ('account.opened', 'a:opened', '{}')",
        )
        .await;
    let publisher = RecordingPublisher::new();
    let relay = RunningRelay::start(&fixture.outbox, &publisher);
    publisher.wait_for(4).await;
    relay.stop().await;
    let figures = recording.figures();
    assert_eq!(figures.count("relay_scheduled_moved_total", ""), 3);
    assert_eq!(figures.count("relay_scheduled_dropped_total", ""), 1);
    assert_eq!(figures.count("relay_published_total", ""), 4);
    assert_eq!(
        figures.count("unit_of_work_events_total", ""),
        0,
        "they were scheduled, not written"
    );
}

pub async fn a_clock_that_is_wrong<DB: TestDatabase>(fixture: Fixture<DB>) {
    let recording = Recording::start();
    let ten_minutes = Duration::from_secs(600);
    let early = Clock::new(move || SystemTime::now() - ten_minutes);
    let late = Clock::new(move || SystemTime::now() + ten_minutes);
    for (n, clock) in [(1, early), (2, late)] {
        let outbox = outbox_runtime::Outbox::builder("test", fixture.pool.clone())
            .clock(clock)
            .build()
            .unwrap();
        fixture
            .run_sql(&insert_events(&format!("c{n}"), 1..=5))
            .await;
        let publisher = RecordingPublisher::new();
        let relay = RunningRelay::start(&outbox, &publisher);
        publisher.wait_for(5).await;
        relay.stop().await;
    }
    let figures = recording.figures();
    let delays = figures.values("relay_occurred_to_published_seconds", "");
    assert_eq!(delays.len(), 10);
    assert_eq!(delays[..5], [0.0; 5], "none is negative");
    assert!(
        delays[5..].iter().all(|delay| *delay >= 599.0),
        "{delays:?}"
    );
}
