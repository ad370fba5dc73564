//! Parked messages that fail again beside what the log still has to bring.

use std::time::Duration;

use outbox_runtime::broker::PublishError;
use outbox_tests::{
    Fixture, RecordingPublisher, RunningRelay, TestDatabase, on_both_databases, quick,
};

use super::bytes::{KIB, insert};

on_both_databases!(parked_messages_that_fail_in_place_leave_bytes_for_the_log);

/// One topic is down, its messages are parked, and an operator has all of them tried at once. The
/// relay then has more of them than it can hold, and the broker's answer to them tells nothing of
/// the others.
async fn parked_messages_that_fail_in_place_leave_bytes_for_the_log<DB: TestDatabase>(
    fixture: Fixture<DB>,
) {
    const BYTES: usize = 10 * KIB;
    const LANES: usize = 12;
    const EACH: i64 = 5;
    let publisher = RecordingPublisher::new();
    let is_down = |message: &outbox_runtime::Message| message.metadata.ordering_key().1 != "well";
    publisher.judge(move |message| match is_down(message) {
        true => Err(PublishError::permanent("no such topic")),
        false => Ok(()),
    });
    for lane in 0..LANES {
        for sequence in 1..=EACH {
            insert(&fixture, &format!("down{lane:02}"), sequence, BYTES).await;
        }
    }
    let options = quick().max_held_bytes(6 * BYTES);
    let relay = RunningRelay::start_with(&fixture.outbox, &publisher, options);
    let parked = "SELECT count(*) FROM outbox_parked";
    let all = i64::try_from(LANES).unwrap() * EACH;
    until(async || fixture.number(parked).await == all).await;

    publisher.judge(move |message| match is_down(message) {
        true => Err(PublishError::transient("the topic is down")),
        false => Ok(()),
    });
    let requeue = "UPDATE outbox_parked SET state = 'failing', attempts = 0,
        next_attempt_at = (SELECT min(occurred_at) FROM outbox_message) WHERE state = 'dead'";
    fixture.run_sql(requeue).await;
    let calls = publisher.calls();
    until(async || publisher.calls() >= calls + 30).await;

    for sequence in 1..=3 {
        insert(&fixture, "well", sequence, BYTES).await;
    }
    publisher.wait_for(3).await;
    assert_eq!(fixture.number(parked).await, all, "nothing was lost of it");

    publisher.accept();
    publisher.wait_for(usize::try_from(all).unwrap() + 3).await;
    until(async || fixture.number(parked).await == 0).await;
    relay.stop().await;
    for (aggregate, sequences) in publisher.sequences() {
        let last = if aggregate == "well" { 3 } else { EACH };
        assert_eq!(sequences, (1..=last).collect::<Vec<_>>(), "{aggregate}");
    }
    assert_eq!(publisher.overlaps(), 0);
}

async fn until(mut is_so: impl AsyncFnMut() -> bool) {
    let so = async {
        while !is_so().await {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    let in_time = tokio::time::timeout(Duration::from_secs(60), so).await;
    assert!(in_time.is_ok(), "not in a minute");
}
