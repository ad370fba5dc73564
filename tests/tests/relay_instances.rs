//! What the relay promises when several instances share the work.
#![allow(
    missing_docs,
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing
)]

use std::time::Duration;

use outbox_runtime::relay::RelayOptions;
use outbox_tests::{
    Fixture, RecordingPublisher, RunningRelay, TestDatabase, insert_events, on_both_databases,
    quick,
};

on_both_databases!(
    share_the_shards_and_hand_them_over,
    what_is_given_up_is_taken_long_before_leases_are_renewed,
    take_over_from_one_that_crashed,
    keep_order_while_instances_come_and_go,
    a_former_owner_moves_nothing,
    a_call_that_outlives_a_lease_is_not_repeated,
);

const OWNED: &str = "SELECT count(*) FROM outbox_shard WHERE owner IS NOT NULL";

fn hasty() -> RelayOptions {
    quick()
        .lease(Duration::from_millis(600))
        .batch_size(20)
        .max_in_flight(3)
}

/// Waits until every shard is owned and each of `instances` has its fair share.
async fn shared_among<DB: TestDatabase>(fixture: &Fixture<DB>, instances: i64) {
    let most =
        "SELECT max(n) FROM (SELECT count(*) AS n FROM outbox_shard GROUP BY owner) AS shares";
    let share = (64 + instances - 1) / instances;
    let shared = async {
        while fixture.number(OWNED).await != 64 || fixture.number(most).await > share {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    let in_time = tokio::time::timeout(Duration::from_secs(30), shared).await;
    assert!(
        in_time.is_ok(),
        "{} owned, one has {}",
        fixture.number(OWNED).await,
        fixture.number(most).await
    );
}

async fn write<DB: TestDatabase>(
    fixture: &Fixture<DB>,
    aggregates: usize,
    sequences: std::ops::RangeInclusive<i64>,
) {
    for sequence in sequences {
        let all: Vec<String> = (0..aggregates)
            .map(|n| insert_events(&format!("a{n}"), [sequence]))
            .collect();
        fixture.run_sql(&all.join(";")).await;
    }
}

async fn share_the_shards_and_hand_them_over<DB: TestDatabase>(fixture: Fixture<DB>) {
    let publisher = RecordingPublisher::new();
    // Long enough not to be lost on a busy machine.
    let calm = || hasty().lease(Duration::from_secs(5));
    let first = RunningRelay::start_with(&fixture.outbox, &publisher, calm());
    shared_among(&fixture, 1).await;
    write(&fixture, 100, 1..=5).await;
    let second = RunningRelay::start_with(&fixture.outbox, &publisher, calm());
    let third = RunningRelay::start_with(&fixture.outbox, &publisher, calm());
    write(&fixture, 100, 6..=10).await;
    shared_among(&fixture, 3).await;
    write(&fixture, 100, 11..=15).await;
    first.stop().await;
    write(&fixture, 100, 16..=20).await;
    shared_among(&fixture, 2).await;
    publisher.wait_for(2000).await;
    second.stop().await;
    third.stop().await;
    publisher.assert_complete(100, 20);
    assert_eq!(publisher.overlaps(), 0);
    assert_eq!(
        publisher.taken().len(),
        2000,
        "a hand-over in good order repeats nothing"
    );
    // A position may be below the end of the log where what follows is another shard's.
    let unfinished = "SELECT count(*) FROM outbox_message AS message \
         JOIN outbox_shard AS shard ON shard.shard = message.shard \
         WHERE message.id > shard.position";
    assert_eq!(fixture.number(unfinished).await, 0);
}

/// Leases are renewed every 20 minutes here: only the look for free shards can hand over in time.
async fn what_is_given_up_is_taken_long_before_leases_are_renewed<DB: TestDatabase>(
    fixture: Fixture<DB>,
) {
    let publisher = RecordingPublisher::new();
    let slow = || hasty().lease(Duration::from_secs(3600));
    let first = RunningRelay::start_with(&fixture.outbox, &publisher, slow());
    shared_among(&fixture, 1).await;
    let second = RunningRelay::start_with(&fixture.outbox, &publisher, slow());
    write(&fixture, 100, 1..=5).await;
    publisher.wait_for(500).await;
    first.stop().await;
    write(&fixture, 100, 6..=10).await;
    publisher.wait_for(1000).await;
    shared_among(&fixture, 1).await;
    second.stop().await;
    publisher.assert_complete(100, 10);
}

async fn take_over_from_one_that_crashed<DB: TestDatabase>(fixture: Fixture<DB>) {
    let publisher = RecordingPublisher::with_delay(Duration::from_millis(2));
    let first = RunningRelay::start_with(&fixture.outbox, &publisher, hasty());
    let second = RunningRelay::start_with(&fixture.outbox, &publisher, hasty());
    shared_among(&fixture, 2).await;
    write(&fixture, 50, 1..=20).await;
    publisher.wait_for(200).await;
    first.crash().await;
    publisher.wait_for(1000).await;
    shared_among(&fixture, 1).await;
    second.stop().await;
    publisher.assert_complete(50, 20);
}

async fn keep_order_while_instances_come_and_go<DB: TestDatabase>(fixture: Fixture<DB>) {
    let publisher = RecordingPublisher::with_delay(Duration::from_millis(1));
    let mut relays: Vec<RunningRelay> = Vec::new();
    for round in 0..12_i64 {
        let first = round * 5 + 1;
        write(&fixture, 40, first..=first + 4).await;
        relays.push(RunningRelay::start_with(
            &fixture.outbox,
            &publisher,
            hasty(),
        ));
        tokio::time::sleep(Duration::from_millis(150)).await;
        if relays.len() == 3 {
            let leaving = relays.remove(0);
            if round % 2 == 0 {
                leaving.crash().await
            } else {
                leaving.stop().await
            }
        }
    }
    publisher.wait_for(2400).await;
    for relay in relays {
        relay.stop().await;
    }
    publisher.assert_complete(40, 60);
}

async fn a_former_owner_moves_nothing<DB: TestDatabase>(fixture: Fixture<DB>) {
    let publisher = RecordingPublisher::with_delay(Duration::from_millis(300));
    let relay = RunningRelay::start_with(&fixture.outbox, &publisher, quick());
    shared_among(&fixture, 1).await;
    fixture.run_sql(&insert_events("a", 1..=10)).await;
    while publisher.calls() == 0 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    // Another instance takes all shards while the call to the broker is under way. It never
    // renews its lease, so in the end they come back.
    let steal = "UPDATE outbox_shard SET epoch = epoch + 1,
        owner = (SELECT message_id FROM outbox_message WHERE id = 1)";
    fixture.run_sql(steal).await;
    publisher.wait_for(10).await;
    let moved = async {
        while fixture
            .number("SELECT min(position) FROM outbox_shard")
            .await
            < 10
        {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), moved)
        .await
        .unwrap();
    relay.stop().await;
    assert_eq!(
        fixture.number("SELECT min(epoch) FROM outbox_shard").await,
        3
    );
    assert_eq!(
        publisher.taken().len(),
        20,
        "what the former owner published did not count"
    );
    publisher.assert_complete(1, 10);
}

/// The lease is renewed as long as the call lasts, and no other instance takes the shards.
async fn a_call_that_outlives_a_lease_is_not_repeated<DB: TestDatabase>(fixture: Fixture<DB>) {
    write(&fixture, 20, 1..=3).await;
    let publisher = RecordingPublisher::with_delay(Duration::from_millis(2500));
    let relays: Vec<_> = (0..2)
        .map(|_| RunningRelay::start_with(&fixture.outbox, &publisher, hasty()))
        .collect();
    publisher.wait_for(60).await;
    for relay in relays {
        relay.stop().await;
    }
    publisher.assert_complete(20, 3);
    assert_eq!(publisher.taken().len(), 60, "none came twice");
}
