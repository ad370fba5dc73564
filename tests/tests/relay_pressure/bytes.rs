//! The bounds by bytes.

use std::time::Duration;

use outbox_runtime::Message;
use outbox_runtime::broker::PublishError;
use outbox_runtime::retry::RetryPolicy;
use outbox_runtime::store::{LogContent, LogRead, LogRequest, RelayStore, ShardSet};
use outbox_tests::{
    Fixture, RecordingPublisher, RunningRelay, TestDatabase, on_both_databases, quick,
};

on_both_databases!(
    bytes_in_flight_stay_within_their_bound,
    a_message_larger_than_every_bound_arrives_among_small_ones,
    a_read_takes_no_more_bytes_than_there_is_room_for,
    large_parked_messages_come_back_in_order,
);

pub(super) const KIB: usize = 1 << 10;
const MIB: usize = 1 << 20;

/// Writes one event with a payload of so many bytes.
pub(super) async fn insert<DB: TestDatabase>(
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

/// Reads after an id; the sizes of the payloads that came. However it is read, the same comes.
async fn read<DB: TestDatabase>(
    fixture: &Fixture<DB>,
    after: i64,
    bytes: usize,
    first_is_free: bool,
) -> (Vec<usize>, LogRead) {
    let queries = DB::relay_queries(&Default::default());
    let mut connection = fixture.pool.acquire().await.unwrap();
    let mut reads = Vec::new();
    for (measured, shards) in [(true, 64), (true, 63), (false, 64), (false, 63)] {
        let request = LogRequest {
            after,
            up_to: i64::MAX,
            gaps: &[],
            limit: 100,
            bytes,
            first_is_free,
            // Whoever wrote these rows knew no shard, so they belong to any.
            shards: (0..shards).collect::<ShardSet>(),
            with_snapshot: false,
            measured,
        };
        let read = <DB as RelayStore>::read_log(&mut connection, &queries, &request)
            .await
            .unwrap();
        let sizes = read.rows.iter().map(|row| match &row.content {
            LogContent::Message(message) => message.payload.len(),
            other => panic!("{other:?}"),
        });
        reads.push((sizes.collect::<Vec<_>>(), read));
    }
    let (sizes, read) = reads.pop().unwrap();
    for (other_sizes, other) in reads {
        assert_eq!(other_sizes, sizes);
        let limits = |read: &LogRead| (read.is_cut, read.no_room_for);
        assert_eq!(limits(&other), limits(&read));
    }
    (sizes, read)
}

async fn a_read_takes_no_more_bytes_than_there_is_room_for<DB: TestDatabase>(fixture: Fixture<DB>) {
    // These compress well, to a fiftieth: what counts is what is held in memory.
    for (sequence, kib) in [10, 20, 300, 10, 10].into_iter().enumerate() {
        let sequence = i64::try_from(sequence).unwrap();
        insert(&fixture, "a", sequence + 1, kib * KIB).await;
    }
    let (sizes, all) = read(&fixture, 0, MIB, false).await;
    assert_eq!(sizes, [10, 20, 300, 10, 10].map(|kib| kib * KIB));
    assert!(!all.is_cut && all.no_room_for.is_none());

    let (sizes, cut) = read(&fixture, 0, 100 * KIB, true).await;
    assert_eq!(sizes, [10 * KIB, 20 * KIB]);
    assert!(cut.is_cut);
    assert_eq!(cut.no_room_for, Some(300 * KIB));

    let (sizes, none) = read(&fixture, 2, 100 * KIB, false).await;
    assert_eq!(sizes, [0; 0]);
    assert_eq!((none.is_cut, none.no_room_for), (true, Some(300 * KIB)));
    let (sizes, alone) = read(&fixture, 2, 100 * KIB, true).await;
    assert_eq!(sizes, [300 * KIB]);
    assert!(alone.is_cut && alone.no_room_for.is_none());

    let (sizes, rest) = read(&fixture, 3, 20 * KIB, false).await;
    assert_eq!(sizes, [10 * KIB, 10 * KIB]);
    assert!(!rest.is_cut);
}

async fn large_parked_messages_come_back_in_order<DB: TestDatabase>(fixture: Fixture<DB>) {
    let publisher = RecordingPublisher::new();
    publisher.judge(|_| Err(PublishError::permanent("not yet")));
    for sequence in 1..=6 {
        for aggregate in ["x", "y", "z"] {
            insert(&fixture, aggregate, sequence, 40 * KIB).await;
        }
    }
    // Two of them fit into memory.
    let options = quick()
        .max_held_bytes(100 * KIB)
        .retry(RetryPolicy::new().permanent_attempts(1_000_000));
    let relay = RunningRelay::start_with(&fixture.outbox, &publisher, options);
    let parked = "SELECT count(*) FROM outbox_parked";
    while fixture.number(parked).await < 18 {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    publisher.accept();
    publisher.wait_for(18).await;
    relay.stop().await;
    publisher.assert_complete(3, 6);
    assert!(publisher.most_bytes_out() <= 100 * KIB);
    assert_eq!(fixture.number(parked).await, 0);
}
