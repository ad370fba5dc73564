//! What the relay promises when the broker, not the database, is in trouble.
#![allow(
    missing_docs,
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing
)]

use std::collections::HashSet;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use outbox_runtime::Message;
use outbox_runtime::backoff::Backoff;
use outbox_runtime::broker::{PublishError, Publisher};
use outbox_runtime::health::Health;
use outbox_runtime::relay::Relay;
use outbox_tests::{
    Fixture, RecordingPublisher, RunningRelay, TestDatabase, insert_events, on_both_databases,
    quick,
};

on_both_databases!(
    carries_what_is_committed_and_writes_down_how_far_it_came,
    keeps_exactly_what_the_broker_refuses,
    repeats_what_was_not_confirmed,
    holds_back_only_the_aggregate_of_a_poison_message,
    starts_without_a_broker_and_drains_by_itself,
    survives_a_publisher_that_panics,
    offers_at_once_what_a_call_had_no_time_for,
    drains_a_backlog_larger_than_its_memory,
    starts_before_the_tables_exist,
    sets_aside_a_row_that_is_no_message,
    says_that_the_rows_of_its_shards_are_gone,
    retries_after_a_crash_what_was_not_written_down,
);

async fn eventually<DB: TestDatabase>(fixture: &Fixture<DB>, sql: &str, expected: i64) {
    let reached = async {
        while fixture.number(sql).await != expected {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    if tokio::time::timeout(Duration::from_secs(30), reached)
        .await
        .is_err()
    {
        panic!("{sql} is {}, not {expected}", fixture.number(sql).await);
    }
}

async fn carries_what_is_committed_and_writes_down_how_far_it_came<DB: TestDatabase>(
    fixture: Fixture<DB>,
) {
    let publisher = RecordingPublisher::new();
    let relay = RunningRelay::start(&fixture.outbox, &publisher);
    for aggregate in ["a", "b", "c"] {
        fixture.run_sql(&insert_events(aggregate, 1..=20)).await;
    }
    publisher.wait_for(60).await;
    relay.stop().await;
    publisher.assert_complete(3, 20);
    let message = &publisher.taken()[0];
    assert_eq!(message.payload, r#"{"n":1}"#);
    assert_eq!(
        message.metadata.correlation_id,
        message.metadata.message_id.to_string()
    );
    assert_eq!(
        fixture
            .number("SELECT min(position) FROM outbox_shard")
            .await,
        60
    );
    let owned = "SELECT count(*) FROM outbox_shard WHERE owner IS NOT NULL";
    assert_eq!(fixture.number(owned).await, 0);
    assert_eq!(fixture.number("SELECT count(*) FROM outbox_relay").await, 0);
    let journal = "SELECT CAST(sum(messages) AS bigint) FROM outbox_journal";
    assert_eq!(fixture.number(journal).await, 60);
    // A second run has nothing to repeat.
    let again = RunningRelay::start(&fixture.outbox, &publisher);
    fixture.run_sql(&insert_events("d", 1..=1)).await;
    publisher.wait_for(61).await;
    again.stop().await;
    assert_eq!(publisher.taken().len(), 61);
}

async fn keeps_exactly_what_the_broker_refuses<DB: TestDatabase>(fixture: Fixture<DB>) {
    let publisher = RecordingPublisher::new();
    publisher.judge(|message| {
        let aggregate = message.metadata.aggregate.as_ref().unwrap();
        if aggregate.aggregate_id == "bad" && aggregate.sequence >= 3 {
            return Err(PublishError::permanent("refused"));
        }
        Ok(())
    });
    for sequence in 1..=6 {
        fixture.run_sql(&insert_events("good", [sequence])).await;
        fixture.run_sql(&insert_events("bad", [sequence])).await;
    }
    let relay = RunningRelay::start(&fixture.outbox, &publisher);
    publisher.wait_for(8).await;
    eventually(&fixture, "SELECT count(*) FROM outbox_parked", 4).await;
    relay.stop().await;
    let sequences = publisher.sequences();
    assert_eq!(
        (sequences["good"].len(), &sequences["bad"][..]),
        (6, &[1, 2][..])
    );
    assert_eq!(
        fixture
            .number("SELECT min(position) FROM outbox_shard")
            .await,
        12
    );
    publisher.accept();
    try_dead_ones_again(&fixture).await;
    let relay = RunningRelay::start(&fixture.outbox, &publisher);
    publisher.wait_for(12).await;
    relay.stop().await;
    publisher.assert_complete(2, 6);
    assert_eq!(
        publisher.taken().len(),
        12,
        "what was taken is not repeated"
    );
}

async fn try_dead_ones_again<DB: TestDatabase>(fixture: &Fixture<DB>) {
    let requeue = "UPDATE outbox_parked SET state = 'failing', attempts = 0,
        next_attempt_at = occurred_at WHERE state = 'dead'";
    fixture.run_sql(requeue).await;
}

async fn repeats_what_was_not_confirmed<DB: TestDatabase>(fixture: Fixture<DB>) {
    let publisher = RecordingPublisher::new();
    // Each message's first answer is lost.
    let offered: Mutex<HashSet<String>> = Mutex::default();
    publisher.judge(move |message| {
        let id = message.metadata.message_id.to_string();
        if offered.lock().unwrap().insert(id) {
            return Err(PublishError::transient("the answer was lost"));
        }
        Ok(())
    });
    for aggregate in 0..10 {
        fixture
            .run_sql(&insert_events(&format!("a{aggregate}"), 1..=10))
            .await;
    }
    let relay = RunningRelay::start(&fixture.outbox, &publisher);
    publisher.wait_for(100).await;
    relay.health.wait_for(|health| health.is_healthy()).await;
    relay.stop().await;
    publisher.assert_complete(10, 10);
    assert_eq!(publisher.overlaps(), 0);
    assert_eq!(
        fixture
            .number("SELECT min(position) FROM outbox_shard")
            .await,
        100
    );
}

async fn holds_back_only_the_aggregate_of_a_poison_message<DB: TestDatabase>(fixture: Fixture<DB>) {
    let publisher = RecordingPublisher::new();
    publisher.judge(|message| {
        let aggregate = message.metadata.aggregate.as_ref().unwrap();
        if aggregate.aggregate_id == "poison" && aggregate.sequence == 1 {
            return Err(PublishError::permanent("too large for password=hunter2"));
        }
        Ok(())
    });
    let relay = RunningRelay::start(&fixture.outbox, &publisher);
    fixture.run_sql(&insert_events("poison", 1..=5)).await;
    for aggregate in 0..20 {
        fixture
            .run_sql(&insert_events(&format!("a{aggregate}"), 1..=10))
            .await;
    }
    publisher.wait_for(200).await;
    relay.health.wait_for(|health| !health.is_healthy()).await;
    let sequences = publisher.sequences();
    assert_eq!(sequences.get("poison"), None);
    assert_eq!(sequences.len(), 20);
    publisher.accept();
    try_dead_ones_again(&fixture).await;
    publisher.wait_for(205).await;
    relay.health.wait_for(|health| health.is_healthy()).await;
    relay.stop().await;
    assert_eq!(publisher.sequences()["poison"], [1, 2, 3, 4, 5]);
    assert_eq!(publisher.taken().len(), 205);
}

async fn starts_without_a_broker_and_drains_by_itself<DB: TestDatabase>(fixture: Fixture<DB>) {
    let publisher = RecordingPublisher::new();
    publisher.go_down();
    // The backoff is long: only the first success can bring the others back soon.
    let patient = quick().backoff(outbox_runtime::backoff::Backoff::new(
        Duration::from_millis(500),
        Duration::from_secs(600),
    ));
    for aggregate in 0..50 {
        fixture
            .run_sql(&insert_events(&format!("a{aggregate}"), 1..=4))
            .await;
    }
    let relay = RunningRelay::start_with(&fixture.outbox, &publisher, patient);
    relay.health.wait_for(|health| !health.is_healthy()).await;
    fixture.run_sql(&insert_events("late", 1..=4)).await;
    publisher.accept();
    publisher.wait_for(204).await;
    relay.health.wait_for(|health| health.is_healthy()).await;
    relay.stop().await;
    publisher.assert_complete(51, 4);
}

/// Takes the first message of each aggregate, and has no time for the others.
struct Hurried(RecordingPublisher);

#[async_trait]
impl Publisher for Hurried {
    async fn publish(&self, messages: &[Message]) -> Vec<Result<(), PublishError>> {
        let mut begun = HashSet::new();
        let (mut firsts, mut are_first) = (Vec::new(), Vec::new());
        for message in messages {
            are_first.push(begun.insert(message.metadata.ordering_key()));
            firsts.extend(
                are_first
                    .last()
                    .filter(|first| **first)
                    .map(|_| message.clone()),
            );
        }
        let mut taken = self.0.publish(&firsts).await.into_iter();
        are_first
            .into_iter()
            .map(|first| match first {
                true => taken.next().unwrap(),
                false => Err(PublishError::withheld()),
            })
            .collect()
    }
}

/// Nothing has failed, so nothing waits or is told of.
async fn offers_at_once_what_a_call_had_no_time_for<DB: TestDatabase>(fixture: Fixture<DB>) {
    for aggregate in ["a", "b", "c"] {
        fixture.run_sql(&insert_events(aggregate, 1..=40)).await;
    }
    let publisher = RecordingPublisher::new();
    // A message that counted as failed would wait for an hour.
    let hour = Duration::from_secs(3600);
    let relay = Relay::new(fixture.outbox.clone(), Hurried(publisher.clone()))
        .with_options(quick().backoff(Backoff::new(hour, hour)))
        .unwrap();
    let health = relay.health();
    let running = tokio::spawn(async move { relay.run_until(std::future::pending()).await });
    publisher.wait_for(120).await;
    publisher.assert_complete(3, 40);
    assert!(health.get().is_healthy(), "{}", health.get());
    running.abort();
}

async fn survives_a_publisher_that_panics<DB: TestDatabase>(fixture: Fixture<DB>) {
    let publisher = RecordingPublisher::new();
    let panics = AtomicBool::new(true);
    publisher.judge(move |_| {
        assert!(!panics.swap(false, Ordering::SeqCst), "on purpose");
        Ok(())
    });
    let relay = RunningRelay::start(&fixture.outbox, &publisher);
    fixture.run_sql(&insert_events("a", 1..=5)).await;
    // The panic poisoned the publisher's own lock.
    relay.health.wait_for(|health| !health.is_healthy()).await;
    relay.stop().await;
    let publisher = RecordingPublisher::new();
    let relay = RunningRelay::start(&fixture.outbox, &publisher);
    publisher.wait_for(5).await;
    relay.stop().await;
    publisher.assert_complete(1, 5);
}

async fn drains_a_backlog_larger_than_its_memory<DB: TestDatabase>(fixture: Fixture<DB>) {
    for aggregate in 0..40 {
        fixture
            .run_sql(&insert_events(&format!("a{aggregate}"), 1..=500))
            .await;
    }
    let publisher = RecordingPublisher::new();
    let options = quick().batch_size(50).max_in_flight(4).max_held(200);
    let relay = RunningRelay::start_with(&fixture.outbox, &publisher, options);
    publisher.wait_for(20_000).await;
    relay.stop().await;
    publisher.assert_complete(40, 500);
    assert_eq!(publisher.overlaps(), 0);
    assert_eq!(publisher.taken().len(), 20_000);
}

async fn starts_before_the_tables_exist<DB: TestDatabase>(fixture: Fixture<DB>) {
    let names = outbox_runtime::Outbox::builder("test", fixture.pool.clone()).prefix("late_");
    let outbox = names.build().unwrap();
    let publisher = RecordingPublisher::new();
    let relay = RunningRelay::start(&outbox, &publisher);
    let says_leases = |health: &Health| health.to_string().contains("leases");
    relay.health.wait_for(says_leases).await;
    outbox.migrate().await.unwrap();
    let insert = insert_events("a", 1..=3).replace("outbox_message", "late_outbox_message");
    fixture.run_sql(&insert).await;
    publisher.wait_for(3).await;
    relay.health.wait_for(|health| health.is_healthy()).await;
    relay.stop().await;
}

async fn sets_aside_a_row_that_is_no_message<DB: TestDatabase>(fixture: Fixture<DB>) {
    fixture.run_sql(&insert_events("a", 1..=2)).await;
    let bad =
        "INSERT INTO outbox_message (event_type, headers, payload) VALUES ('Bad', '[1]', '{}')";
    fixture.run_sql(bad).await;
    fixture.run_sql(&insert_events("a", 3..=4)).await;
    let publisher = RecordingPublisher::new();
    let relay = RunningRelay::start(&fixture.outbox, &publisher);
    publisher.wait_for(4).await;
    let health = relay.health.wait_for(|health| !health.is_healthy()).await;
    assert!(health.to_string().contains("row 3"), "{health}");
    eventually(&fixture, "SELECT min(position) FROM outbox_shard", 5).await;
    relay.stop().await;
    let dead = "SELECT count(*) FROM outbox_parked WHERE state = 'dead' AND id = 3";
    assert_eq!(fixture.number(dead).await, 1);
}

async fn retries_after_a_crash_what_was_not_written_down<DB: TestDatabase>(fixture: Fixture<DB>) {
    for aggregate in 0..20 {
        fixture
            .run_sql(&insert_events(&format!("a{aggregate}"), 1..=50))
            .await;
    }
    let publisher = RecordingPublisher::with_delay(Duration::from_millis(3));
    let options = || {
        quick()
            .batch_size(20)
            .max_in_flight(3)
            .lease(Duration::from_millis(300))
    };
    for crash in 1..=5 {
        let relay = RunningRelay::start_with(&fixture.outbox, &publisher, options());
        publisher.wait_for(crash * 100).await;
        relay.crash().await;
    }
    let relay = RunningRelay::start_with(&fixture.outbox, &publisher, options());
    publisher.wait_for(1000).await;
    // The shards of the one that crashed last come back only when its lease is over.
    eventually(&fixture, "SELECT min(position) FROM outbox_shard", 1000).await;
    relay.stop().await;
    publisher.assert_complete(20, 50);
}

#[cfg(feature = "postgres")]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn goes_on_beside_a_row_whose_time_is_none() {
    let Some(fixture) = outbox_tests::postgres().await else {
        return;
    };
    for time in ["infinity", "-infinity", "20000-01-01", "4000-01-01 BC"] {
        let insert = format!(
            "INSERT INTO outbox_message (event_type, occurred_at, payload) VALUES ('Happened', '{time}', '{{}}')"
        );
        fixture.run_sql(&insert).await;
    }
    fixture.run_sql(&insert_events("a", 1..=5)).await;
    let publisher = RecordingPublisher::new();
    let relay = RunningRelay::start(&fixture.outbox, &publisher);
    publisher.wait_for(5).await;
    let health = relay.health.wait_for(|health| !health.is_healthy()).await;
    assert!(health.to_string().contains("occurred_at"), "{health}");
    relay.stop().await;
    publisher.assert_complete(1, 5);
}

async fn says_that_the_rows_of_its_shards_are_gone<DB: TestDatabase>(fixture: Fixture<DB>) {
    fixture.run_sql("DELETE FROM outbox_shard").await;
    let relay = RunningRelay::start(&fixture.outbox, &RecordingPublisher::new());
    let said = async {
        while !relay.health.get().to_string().contains("outbox_shard") {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), said)
        .await
        .unwrap();
    relay.stop().await;
}
