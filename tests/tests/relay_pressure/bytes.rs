//! The bounds by bytes.

use std::time::Duration;

use outbox_runtime::Message;
use outbox_tests::{
    Fixture, RecordingPublisher, RunningRelay, TestDatabase, on_both_databases, quick,
};

on_both_databases!(
    bytes_in_flight_stay_within_their_bound,
    a_message_larger_than_every_bound_arrives_among_small_ones,
);

const KIB: usize = 1 << 10;
const MIB: usize = 1 << 20;

/// Writes one event with a payload of so many bytes.
async fn insert<DB: TestDatabase>(
    fixture: &Fixture<DB>,
    aggregate: &str,
    sequence: i64,
    bytes: usize,
) {
    let frame = r#"{"p":""}"#.len();
    let payload = format!(r#"{{"p":"{}"}}"#, "x".repeat(bytes - frame));
    let sql = "INSERT INTO outbox_message (event_type, aggregate_type, aggregate_id, sequence, payload) VALUES";
    fixture
        .run_sql(&format!(
            "{sql} ('Happened', 'Thing', '{aggregate}', {sequence}, '{payload}')"
        ))
        .await;
}

async fn bytes_in_flight_stay_within_their_bound<DB: TestDatabase>(fixture: Fixture<DB>) {
    for sequence in 1..=8 {
        for aggregate in ["a", "b", "c", "d", "e", "f"] {
            insert(&fixture, aggregate, sequence, 10 * KIB).await;
        }
    }
    let publisher = RecordingPublisher::with_delay(Duration::from_millis(5));
    let options = quick()
        .batch_bytes(25 * KIB)
        .max_in_flight_bytes(64 * KIB)
        .max_in_flight(20);
    let relay = RunningRelay::start_with(&fixture.outbox, &publisher, options);
    publisher.wait_for(48).await;
    relay.stop().await;
    publisher.assert_complete(6, 8);
    assert_eq!(publisher.most_messages_in_a_call(), 2);
    // Six of ten fit into 64, and that much is used: three calls at a time.
    assert_eq!(publisher.most_bytes_out(), 60 * KIB);
    assert_eq!(publisher.most_calls_out(), 3);
}

async fn a_message_larger_than_every_bound_arrives_among_small_ones<DB: TestDatabase>(
    fixture: Fixture<DB>,
) {
    for sequence in 1..=9 {
        insert(&fixture, "a", sequence, KIB).await;
        let bytes = if sequence == 5 { 5 * MIB } else { KIB };
        insert(&fixture, "large", sequence, bytes).await;
        insert(&fixture, "b", sequence, KIB).await;
    }
    let publisher = RecordingPublisher::with_delay(Duration::from_millis(2));
    // Whatever is out beside it would show in the bytes.
    let is_large = |message: &Message| message.payload.len() == 5 * MIB;
    let options = quick()
        .batch_size(2)
        .batch_bytes(MIB)
        .max_in_flight_bytes(MIB)
        .max_held_bytes(MIB);
    let relay = RunningRelay::start_with(&fixture.outbox, &publisher, options);
    publisher.wait_for(27).await;
    relay.stop().await;
    publisher.assert_complete(3, 9);
    assert_eq!(publisher.taken().iter().filter(|m| is_large(m)).count(), 1);
    assert_eq!(publisher.most_bytes_out(), 5 * MIB, "it goes alone");
}
