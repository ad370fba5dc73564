//! What the relay promises about messages that the broker does not take.
#![allow(
    missing_docs,
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing
)]

use std::collections::HashMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use outbox_runtime::Message;
use outbox_runtime::backoff::Backoff;
use outbox_runtime::broker::PublishError;
use outbox_runtime::relay::RelayOptions;
use outbox_runtime::retry::{OnDead, RetryPolicy};
use outbox_tests::{
    Fixture, RecordingPublisher, RunningRelay, TestDatabase, insert_events, on_both_databases,
    quick,
};

on_both_databases!(
    a_poison_message_among_a_thousand_blocks_its_aggregate_only,
    a_head_that_succeeds_later_keeps_the_order,
    a_long_lane_drains_in_order_while_it_grows,
    a_crash_at_any_moment_loses_nothing,
    a_parked_lane_is_handed_over_with_its_shard,
    a_crashed_owner_leaves_its_parked_lanes_to_the_next,
    a_former_owner_parks_nothing,
    an_aggregate_goes_on_without_its_dead_message_where_the_event_says_so,
    a_retry_is_due_by_the_clock_of_the_database,
    attempts_are_kept_and_bounded,
    a_broker_that_is_down_parks_nothing,
    an_outage_does_not_count_as_attempts,
    a_row_that_is_no_message_is_dead_in_its_aggregates_order,
    a_lane_that_was_left_without_a_head_gets_one,
    what_takes_too_long_to_park_at_once_is_parked_in_pieces,
    a_relay_that_stops_on_a_slow_disk_parks_what_it_holds,
);

const PARKED: &str = "SELECT count(*) FROM outbox_parked";
const POSITION: &str = "SELECT min(position) FROM outbox_shard";

async fn eventually<DB: TestDatabase>(fixture: &Fixture<DB>, sql: &str, expected: i64) {
    let reached = async {
        while fixture.number(sql).await != expected {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    if tokio::time::timeout(Duration::from_secs(40), reached)
        .await
        .is_err()
    {
        let parked = "SELECT id || ' ' || shard || ' ' || state || ' ' || attempts || ' ' || lane
            FROM outbox_parked ORDER BY id";
        panic!(
            "{sql} is {}, not {expected}; parked: {:?}",
            fixture.number(sql).await,
            fixture.texts(parked).await
        );
    }
}

fn place(message: &Message) -> (&str, i64) {
    let aggregate = message.metadata.aggregate.as_ref().unwrap();
    (&aggregate.aggregate_id, aggregate.sequence)
}

/// A broker that refuses one message of the aggregate `bad` for good.
fn refusing(sequence: i64) -> RecordingPublisher {
    let publisher = RecordingPublisher::new();
    publisher.judge(move |message| match place(message) {
        ("bad", found) if found == sequence => Err(PublishError::permanent("refused")),
        _ => Ok(()),
    });
    publisher
}

/// Waits are short; a permanent failure is dead at once.
fn options() -> RelayOptions {
    quick().lease(Duration::from_millis(1500))
}

fn hurried() -> RetryPolicy {
    let backoff = Backoff::new(Duration::from_millis(1), Duration::from_millis(20));
    RetryPolicy::new().backoff(backoff)
}

/// What an operator does to have dead messages tried again.
async fn requeue<DB: TestDatabase>(fixture: &Fixture<DB>) {
    let requeue = "UPDATE outbox_parked SET state = 'failing', attempts = 0,
        next_attempt_at = (SELECT min(occurred_at) FROM outbox_message) WHERE state = 'dead'";
    fixture.run_sql(requeue).await;
}

async fn a_poison_message_among_a_thousand_blocks_its_aggregate_only<DB: TestDatabase>(
    fixture: Fixture<DB>,
) {
    let publisher = refusing(3);
    for aggregate in 0..33 {
        let insert = insert_events(&format!("a{aggregate}"), 1..=30);
        fixture.run_sql(&insert).await;
    }
    fixture.run_sql(&insert_events("bad", 1..=10)).await;
    let relay = RunningRelay::start_with(&fixture.outbox, &publisher, options());
    publisher.wait_for(992).await;
    eventually(&fixture, POSITION, 1000).await;
    let sequences = publisher.sequences();
    assert_eq!(sequences["bad"], [1, 2]);
    assert_eq!(sequences.len(), 34);
    assert_eq!(publisher.taken().len(), 992);
    let health = relay.health.wait_for(|health| !health.is_healthy()).await;
    assert!(health.to_string().contains("refused"), "{health}");
    let states = "SELECT state || ' ' || attempts FROM outbox_parked ORDER BY id";
    let mut expected = vec!["dead 1"];
    expected.resize(8, "waiting 0");
    assert_eq!(fixture.texts(states).await, expected);
    let copies = "SELECT count(*) FROM outbox_parked AS parked
        JOIN outbox_message AS message ON message.id = parked.id
        WHERE message.message_id = parked.message_id AND message.event_type = parked.event_type
            AND message.aggregate_id = parked.aggregate_id AND message.sequence = parked.sequence
            AND message.occurred_at = parked.occurred_at
            AND CAST(message.payload AS text) = CAST(parked.payload AS text)";
    assert_eq!(fixture.number(copies).await, 8);
    // What comes meanwhile waits behind it.
    fixture.run_sql(&insert_events("bad", 11..=12)).await;
    fixture.run_sql(&insert_events("a0", 31..=32)).await;
    eventually(&fixture, POSITION, 1004).await;
    assert_eq!(fixture.number(PARKED).await, 10);
    publisher.accept();
    requeue(&fixture).await;
    eventually(&fixture, PARKED, 0).await;
    fixture.run_sql(&insert_events("bad", 13..=14)).await;
    publisher.wait_for(1006).await;
    relay.health.wait_for(|health| health.is_healthy()).await;
    relay.stop().await;
    assert_eq!(publisher.sequences()["bad"], (1..=14).collect::<Vec<_>>());
    assert_eq!(publisher.taken().len(), 1006, "nothing was repeated");
    assert_eq!(publisher.overlaps(), 0);
    let attempts = "SELECT count(*) FROM outbox_parked_attempt";
    assert_eq!(fixture.number(attempts).await, 0);
}

async fn a_head_that_succeeds_later_keeps_the_order<DB: TestDatabase>(fixture: Fixture<DB>) {
    let publisher = RecordingPublisher::new();
    let offered = AtomicUsize::new(0);
    publisher.judge(move |message| match place(message) {
        ("slow", 2) if offered.fetch_add(1, Ordering::SeqCst) < 12 => {
            Err(PublishError::transient("not yet"))
        }
        _ => Ok(()),
    });
    let relay = RunningRelay::start_with(&fixture.outbox, &publisher, options().retry(hurried()));
    // The failure is the message's own only while others get through.
    for round in 0..100 {
        let slow = 3 * round + 1;
        fixture
            .run_sql(&insert_events("slow", slow..=slow + 2))
            .await;
        fixture.run_sql(&insert_events("quick", [round + 1])).await;
    }
    publisher.wait_for(400).await;
    eventually(&fixture, PARKED, 0).await;
    eventually(&fixture, POSITION, 400).await;
    relay.stop().await;
    let sequences = publisher.sequences();
    assert_eq!(sequences["slow"], (1..=300).collect::<Vec<_>>());
    assert_eq!(sequences["quick"], (1..=100).collect::<Vec<_>>());
    assert_eq!(publisher.taken().len(), 400);
    assert_eq!(publisher.overlaps(), 0);
}

async fn a_long_lane_drains_in_order_while_it_grows<DB: TestDatabase>(fixture: Fixture<DB>) {
    let publisher = refusing(1);
    let options = options().batch_size(50).max_in_flight(2).max_held(200);
    let relay = RunningRelay::start_with(&fixture.outbox, &publisher, options);
    fixture.run_sql(&insert_events("bad", 1..=1_500)).await;
    eventually(&fixture, POSITION, 1_500).await;
    assert_eq!(fixture.number(PARKED).await, 1_500);
    publisher.accept();
    requeue(&fixture).await;
    for round in 0..50 {
        let first = 1_501 + 10 * round;
        let insert = insert_events("bad", first..=first + 9);
        fixture.run_sql(&insert).await;
    }
    publisher.wait_for(2_000).await;
    eventually(&fixture, PARKED, 0).await;
    eventually(&fixture, POSITION, 2_000).await;
    relay.stop().await;
    publisher.assert_complete(1, 2_000);
    assert_eq!(publisher.taken().len(), 2_000);
    assert_eq!(publisher.overlaps(), 0);
}

async fn a_crash_at_any_moment_loses_nothing<DB: TestDatabase>(fixture: Fixture<DB>) {
    let publisher = RecordingPublisher::with_delay(Duration::from_millis(1));
    // Every fifth message fails for good a few times.
    let offered: Mutex<HashMap<String, usize>> = Mutex::default();
    publisher.judge(move |message| {
        let (aggregate, sequence) = place(message);
        let mut offered = offered.lock().unwrap();
        let times = offered
            .entry(format!("{aggregate} {sequence}"))
            .or_default();
        *times += 1;
        if sequence % 5 == 0 && *times < 4 {
            return Err(PublishError::permanent("not now"));
        }
        Ok(())
    });
    let options = || {
        quick()
            .lease(Duration::from_millis(300))
            .batch_size(20)
            .max_in_flight(3)
            .retry(hurried().permanent_attempts(1_000))
    };
    for aggregate in 0..20 {
        let insert = insert_events(&format!("a{aggregate}"), 1..=30);
        fixture.run_sql(&insert).await;
    }
    for crash in 0..14_u64 {
        let relay = RunningRelay::start_with(&fixture.outbox, &publisher, options());
        tokio::time::sleep(Duration::from_millis(310 + (crash * 37) % 60)).await;
        relay.crash().await;
        if crash % 3 == 2 {
            // As if none of the positions had been stored since.
            fixture
                .run_sql("UPDATE outbox_shard SET position = 0")
                .await;
        }
        if crash % 2 == 0 {
            let more = 31 + i64::try_from(crash).unwrap() / 2;
            for aggregate in 0..20 {
                let insert = insert_events(&format!("a{aggregate}"), [more]);
                fixture.run_sql(&insert).await;
            }
        }
    }
    let relay = RunningRelay::start_with(&fixture.outbox, &publisher, options());
    publisher.wait_for(740).await;
    eventually(&fixture, PARKED, 0).await;
    eventually(&fixture, POSITION, 740).await;
    relay.stop().await;
    publisher.assert_complete(20, 37);
}

async fn a_parked_lane_is_handed_over_with_its_shard<DB: TestDatabase>(fixture: Fixture<DB>) {
    let publisher = refusing(2);
    let first = RunningRelay::start_with(&fixture.outbox, &publisher, options());
    fixture.run_sql(&insert_events("bad", 1..=5)).await;
    fixture.run_sql(&insert_events("good", 1..=5)).await;
    publisher.wait_for(6).await;
    eventually(&fixture, PARKED, 4).await;
    let second = RunningRelay::start_with(&fixture.outbox, &publisher, options());
    first.stop().await;
    fixture.run_sql(&insert_events("bad", 6..=8)).await;
    fixture.run_sql(&insert_events("good", 6..=8)).await;
    eventually(&fixture, POSITION, 16).await;
    assert_eq!(fixture.number(PARKED).await, 7);
    assert!(!second.health.get().is_healthy());
    publisher.accept();
    requeue(&fixture).await;
    publisher.wait_for(16).await;
    eventually(&fixture, PARKED, 0).await;
    second.stop().await;
    publisher.assert_complete(2, 8);
    assert_eq!(publisher.taken().len(), 16);
}

async fn a_crashed_owner_leaves_its_parked_lanes_to_the_next<DB: TestDatabase>(
    fixture: Fixture<DB>,
) {
    let publisher = refusing(2);
    let hasty = || options().lease(Duration::from_millis(400));
    let first = RunningRelay::start_with(&fixture.outbox, &publisher, hasty());
    fixture.run_sql(&insert_events("bad", 1..=5)).await;
    eventually(&fixture, PARKED, 4).await;
    first.crash().await;
    // The parking has committed; that the positions moved is lost.
    fixture
        .run_sql("UPDATE outbox_shard SET position = 0")
        .await;
    fixture.run_sql(&insert_events("bad", 6..=8)).await;
    let second = RunningRelay::start_with(&fixture.outbox, &publisher, hasty());
    eventually(&fixture, POSITION, 8).await;
    let taken = publisher.sequences();
    assert_eq!(taken["bad"], [1]);
    publisher.accept();
    requeue(&fixture).await;
    eventually(&fixture, PARKED, 0).await;
    second.stop().await;
    publisher.assert_complete(1, 8);
    assert_eq!(
        fixture
            .number("SELECT count(*) FROM outbox_parked_attempt")
            .await,
        0
    );
}

async fn a_former_owner_parks_nothing<DB: TestDatabase>(fixture: Fixture<DB>) {
    let publisher = RecordingPublisher::new();
    publisher.go_down();
    let calm = options().lease(Duration::from_secs(10));
    let relay = RunningRelay::start_with(&fixture.outbox, &publisher, calm);
    fixture.run_sql(&insert_events("a", 1..=3)).await;
    while publisher.calls() < 2 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    // Another instance takes all shards, and this one hears of it by its next statement only.
    let steal = "UPDATE outbox_shard SET epoch = epoch + 1,
        owner = (SELECT message_id FROM outbox_message WHERE id = 1),
        lease_until = (SELECT max(lease_until) FROM outbox_relay)";
    fixture.run_sql(steal).await;
    publisher.judge(|_| Err(PublishError::permanent("refused")));
    tokio::time::sleep(Duration::from_secs(1)).await;
    relay.stop().await;
    assert_eq!(fixture.number(PARKED).await, 0);
    let moved = "SELECT min(position) FROM outbox_shard";
    assert_eq!(fixture.number(moved).await, 0);
}

async fn an_aggregate_goes_on_without_its_dead_message_where_the_event_says_so<DB: TestDatabase>(
    fixture: Fixture<DB>,
) {
    let publisher = refusing(2);
    let go_on = RetryPolicy::new().on_dead(OnDead::GoOn);
    let relay = RunningRelay::start_with(
        &fixture.outbox,
        &publisher,
        options().retry_event("Happened", go_on),
    );
    fixture.run_sql(&insert_events("bad", 1..=50)).await;
    publisher.wait_for(49).await;
    eventually(&fixture, POSITION, 50).await;
    let left = "SELECT state || ' ' || sequence FROM outbox_parked";
    assert_eq!(fixture.texts(left).await, ["dead 2"]);
    let mut expected: Vec<_> = (1..=50).filter(|n| *n != 2).collect();
    assert_eq!(publisher.sequences()["bad"], expected);
    // It can still be sent; it comes late then.
    publisher.accept();
    requeue(&fixture).await;
    eventually(&fixture, PARKED, 0).await;
    fixture.run_sql(&insert_events("bad", 51..=52)).await;
    publisher.wait_for(52).await;
    relay.health.wait_for(|health| health.is_healthy()).await;
    relay.stop().await;
    expected.extend([2, 51, 52]);
    assert_eq!(publisher.sequences()["bad"], expected);
    assert_eq!(publisher.taken().len(), 52);
}

async fn a_retry_is_due_by_the_clock_of_the_database<DB: TestDatabase>(fixture: Fixture<DB>) {
    let publisher = refusing(1);
    let hours = Backoff::new(Duration::from_secs(360_000), Duration::from_secs(360_000));
    let policy = RetryPolicy::new().permanent_attempts(9).backoff(hours);
    let relay = RunningRelay::start_with(&fixture.outbox, &publisher, options().retry(policy));
    fixture.run_sql(&insert_events("bad", 1..=3)).await;
    eventually(&fixture, PARKED, 3).await;
    let now = "(SELECT min(occurred_at) FROM outbox_message)";
    let later = match fixture.url.starts_with("sqlite") {
        true => format!("{now} + 3600000"),
        false => format!("{now} + interval '1 hour'"),
    };
    let due = |at: &str| {
        format!("UPDATE outbox_parked SET next_attempt_at = {at} WHERE state = 'failing'")
    };
    fixture.run_sql(&due(&later)).await;
    publisher.accept();
    fixture.run_sql(&insert_events("good", 1..=3)).await;
    publisher.wait_for(3).await;
    tokio::time::sleep(Duration::from_millis(400)).await;
    assert_eq!(fixture.number(PARKED).await, 3);
    fixture.run_sql(&due(now)).await;
    eventually(&fixture, PARKED, 0).await;
    relay.stop().await;
    publisher.assert_complete(2, 3);
}

async fn attempts_are_kept_and_bounded<DB: TestDatabase>(fixture: Fixture<DB>) {
    let publisher = RecordingPublisher::new();
    publisher.judge(|message| {
        let secret = &message.payload;
        let long = "x".repeat(5_000);
        Err(PublishError::permanent(format!(
            "can't\n\u{1b}[31m send {secret} {long}"
        )))
    });
    let policy = hurried().permanent_attempts(60);
    let relay = RunningRelay::start_with(&fixture.outbox, &publisher, options().retry(policy));
    let insert = insert_events("a", 1..=1).replace(r#"{"n":1}"#, r#"{"card":"4711"}"#);
    fixture.run_sql(&insert).await;
    eventually(
        &fixture,
        "SELECT count(*) FROM outbox_parked WHERE state = 'dead' AND attempts = 60",
        1,
    )
    .await;
    relay.stop().await;
    let kept = "SELECT count(*) FROM outbox_parked_attempt";
    assert_eq!(fixture.number(kept).await, 50);
    let newest =
        "SELECT CAST(min(attempt) * 1000 + max(attempt) AS bigint) FROM outbox_parked_attempt";
    assert_eq!(fixture.number(newest).await, 11_060);
    for cause in fixture
        .texts("SELECT cause FROM outbox_parked_attempt UNION SELECT last_cause FROM outbox_parked")
        .await
    {
        assert!(cause.starts_with("the broker refuses"), "{cause}");
        assert!(cause.len() <= 2_000 && !cause.contains("4711"), "{cause}");
        assert!(!cause.chars().any(char::is_control), "{cause}");
    }
}

async fn a_broker_that_is_down_parks_nothing<DB: TestDatabase>(fixture: Fixture<DB>) {
    let publisher = RecordingPublisher::new();
    let relay = RunningRelay::start_with(&fixture.outbox, &publisher, options());
    fixture.run_sql(&insert_events("before", 1..=2)).await;
    publisher.wait_for(2).await;
    publisher.go_down();
    for aggregate in 0..50 {
        let insert = insert_events(&format!("a{aggregate}"), 1..=4);
        fixture.run_sql(&insert).await;
    }
    relay.health.wait_for(|health| !health.is_healthy()).await;
    let calls = publisher.calls();
    while publisher.calls() < calls + 100 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert_eq!(fixture.number(PARKED).await, 0);
    publisher.accept();
    publisher.wait_for(202).await;
    relay.health.wait_for(|health| health.is_healthy()).await;
    eventually(&fixture, POSITION, 202).await;
    relay.stop().await;
    assert_eq!(fixture.number(PARKED).await, 0);
    assert!(
        publisher
            .sequences()
            .values()
            .all(|found| found.is_sorted())
    );
}

async fn an_outage_does_not_count_as_attempts<DB: TestDatabase>(fixture: Fixture<DB>) {
    let publisher = refusing(1);
    let policy = hurried().permanent_attempts(1).max_attempts(5);
    let relay = RunningRelay::start_with(&fixture.outbox, &publisher, options().retry(policy));
    fixture.run_sql(&insert_events("bad", 1..=3)).await;
    fixture.run_sql(&insert_events("good", 1..=3)).await;
    eventually(&fixture, PARKED, 3).await;
    publisher.go_down();
    requeue(&fixture).await;
    fixture.run_sql(&insert_events("good", 4..=6)).await;
    let calls = publisher.calls();
    while publisher.calls() < calls + 40 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let dead = "SELECT count(*) FROM outbox_parked WHERE state = 'dead'";
    assert_eq!(fixture.number(dead).await, 0);
    publisher.accept();
    eventually(&fixture, PARKED, 0).await;
    publisher.wait_for(9).await;
    relay.stop().await;
    let sequences = publisher.sequences();
    assert_eq!(
        (&sequences["bad"][..], sequences["good"].len()),
        (&[1, 2, 3][..], 6)
    );
}

async fn a_row_that_is_no_message_is_dead_in_its_aggregates_order<DB: TestDatabase>(
    fixture: Fixture<DB>,
) {
    let bad = insert_events("a", [3])
        .replace("payload)", "headers, payload)")
        .replace(r#"'{"n":3}'"#, r#"'[1]', '{"n":3}'"#);
    for insert in [insert_events("a", 1..=2), bad, insert_events("a", 4..=5)] {
        fixture.run_sql(&insert).await;
    }
    let publisher = RecordingPublisher::new();
    let relay = RunningRelay::start_with(&fixture.outbox, &publisher, options());
    eventually(&fixture, POSITION, 5).await;
    let states = "SELECT sequence || ' ' || state || ' ' || CAST(coalesce(headers, '0') AS text)
        FROM outbox_parked ORDER BY id";
    assert_eq!(
        fixture.texts(states).await,
        ["3 dead [1]", "4 waiting 0", "5 waiting 0"]
    );
    // Tried again, it fails the same way; once it is discarded, the others go on.
    requeue(&fixture).await;
    eventually(&fixture, "SELECT count(*) FROM outbox_parked_attempt", 2).await;
    let discard = "DELETE FROM outbox_parked WHERE state = 'dead';
        UPDATE outbox_parked SET state = 'failing', next_attempt_at = occurred_at
        WHERE id = (SELECT min(id) FROM outbox_parked)";
    fixture.run_sql(discard).await;
    eventually(&fixture, PARKED, 0).await;
    relay.health.wait_for(|health| health.is_healthy()).await;
    relay.stop().await;
    assert_eq!(publisher.sequences()["a"], [1, 2, 4, 5]);
}

async fn a_lane_that_was_left_without_a_head_gets_one<DB: TestDatabase>(fixture: Fixture<DB>) {
    let publisher = refusing(1);
    let relay = RunningRelay::start_with(&fixture.outbox, &publisher, options());
    fixture.run_sql(&insert_events("bad", 1..=3)).await;
    eventually(&fixture, PARKED, 3).await;
    relay.stop().await;
    fixture
        .run_sql("DELETE FROM outbox_parked WHERE state = 'dead'")
        .await;
    let relay = RunningRelay::start_with(&fixture.outbox, &publisher, options());
    eventually(&fixture, PARKED, 0).await;
    relay.stop().await;
    assert_eq!(publisher.sequences()["bad"], [2, 3]);
}

async fn what_takes_too_long_to_park_at_once_is_parked_in_pieces<DB: TestDatabase>(
    fixture: Fixture<DB>,
) {
    fixture.run_sql(DB::SLOW_PARKING).await;
    let publisher = refusing(1);
    let options = quick().lease(Duration::from_millis(900));
    fixture.run_sql(&insert_events("bad", 1..=300)).await;
    let relay = RunningRelay::start_with(&fixture.outbox, &publisher, options);
    eventually(&fixture, POSITION, 300).await;
    assert_eq!(fixture.number(PARKED).await, 300);
    publisher.accept();
    requeue(&fixture).await;
    publisher.wait_for(300).await;
    eventually(&fixture, PARKED, 0).await;
    relay.stop().await;
    publisher.assert_complete(1, 300);
    assert_eq!(publisher.overlaps(), 0);
}

async fn a_relay_that_stops_on_a_slow_disk_parks_what_it_holds<DB: TestDatabase>(
    fixture: Fixture<DB>,
) {
    fixture.run_sql(DB::SLOW_PARKING).await;
    let publisher = RecordingPublisher::new();
    let (offer, mut offered) = tokio::sync::watch::channel(false);
    publisher.judge(move |_| {
        offer.send_replace(true);
        Err(PublishError::permanent("refused"))
    });
    let options = quick()
        .lease(Duration::from_millis(900))
        .shutdown_deadline(Duration::from_secs(40));
    fixture.run_sql(&insert_events("bad", 1..=300)).await;
    let relay = RunningRelay::start_with(&fixture.outbox, &publisher, options);
    offered.wait_for(|&offered| offered).await.unwrap();
    relay.stop().await;
    assert_eq!(fixture.number(PARKED).await, 300);
    assert_eq!(fixture.number(POSITION).await, 300);
    let owned = "SELECT count(*) FROM outbox_shard WHERE owner IS NOT NULL";
    assert_eq!(
        fixture.number(owned).await,
        0,
        "shards that were not given back"
    );
}
