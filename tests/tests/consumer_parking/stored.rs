//! How the tables keep what is parked.

use std::time::Duration;

use outbox_runtime::Message;
use outbox_runtime::prelude::*;
use outbox_runtime::store::{FailedAgain, Parked, ParkedState, ToSetAside};
use outbox_tests::{Fixture, TestDatabase, message, on_both_databases};
use sqlx::Connection;
use time::OffsetDateTime;
use uuid::Uuid;

use crate::consumer_support::{Account, paid};

on_both_databases!(
    a_parked_message_comes_back_byte_for_byte,
    the_newest_fifty_attempts_are_kept,
);

fn to_set_aside(message: &Message) -> ToSetAside<'_> {
    ToSetAside {
        consumer: "c",
        idempotency_key: Some("k"),
        message,
        state: ParkedState::Failing,
        holds: true,
        wait: Duration::ZERO,
        cause: Some("cause"),
    }
}

async fn a_parked_message_comes_back_byte_for_byte<DB>(fixture: Fixture<DB>)
where
    DB: TestDatabase + Stores<Account>,
{
    let queries = DB::inbox_queries(fixture.outbox.names());
    let mut connection = fixture.pool.acquire().await.unwrap();
    let mut first = message(&paid("a", 1), "Größe\u{1f600}", i64::MAX);
    first.payload = "{ \"z\":1.0e2,\n\"a\" : \"\\u0000 é\" , \"z\":2}".to_owned();
    first.metadata.schema_version = u32::MAX;
    first.metadata.occurred_at =
        OffsetDateTime::from_unix_timestamp_nanos(1_740_355_200_123_456_789).unwrap();
    first.metadata.headers = [("tenant", "blue\"'"), ("empty", "")]
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .into();
    first.metadata.causation_id = Some("cause".to_owned());
    let mut second = message(&paid("a", 1), "x", 1);
    second.metadata.aggregate = None;
    second.metadata.traceparent = None;
    second.metadata.tracestate = None;
    second.metadata.occurred_at =
        OffsetDateTime::from_unix_timestamp_nanos(-1_000_000_001).unwrap();
    // Too long for an index, and not to be compressed.
    let mut third = message(&paid("a", 1), "y", 2);
    if let Some(aggregate) = &mut third.metadata.aggregate {
        aggregate.aggregate_id = (0..500).map(|_| Uuid::new_v4().to_string()).collect();
    }
    for message in [first, second, third] {
        let parked = DB::set_aside(&mut connection, &queries, to_set_aside(&message))
            .await
            .unwrap();
        assert_eq!(parked, Parked::Now);
        let again = DB::set_aside(&mut connection, &queries, to_set_aside(&message))
            .await
            .unwrap();
        assert_eq!(again, Parked::Before);
        let heads = DB::parked_heads(&mut connection, &queries, &["c"], 10)
            .await
            .unwrap();
        let taken = DB::take_out(&mut connection, &queries, heads[0].id)
            .await
            .unwrap()
            .unwrap();
        assert_eq!(taken.message, message);
        assert_eq!((taken.consumer.as_str(), taken.attempts), ("c", 1));
    }
}

async fn the_newest_fifty_attempts_are_kept<DB>(fixture: Fixture<DB>)
where
    DB: TestDatabase + Stores<Account>,
{
    let queries = DB::inbox_queries(fixture.outbox.names());
    let mut connection = fixture.pool.acquire().await.unwrap();
    let message = message(&paid("a", 1), "order-1", 1);
    DB::set_aside(&mut connection, &queries, to_set_aside(&message))
        .await
        .unwrap();
    let heads = DB::parked_heads(&mut connection, &queries, &["c"], 10)
        .await
        .unwrap();
    for attempts in 1..70 {
        let mut transaction = connection.begin().await.unwrap();
        let failed = FailedAgain {
            id: heads[0].id,
            attempts,
            state: ParkedState::Failing,
            holds: true,
            // No wait is too long for a database's time.
            wait: Duration::MAX,
            cause: "again",
        };
        let is_recorded = DB::failed_again(&mut transaction, &queries, failed).await;
        assert!(is_recorded.unwrap());
        transaction.commit().await.unwrap();
    }
    drop(connection);
    let kept = fixture
        .texts("SELECT CAST(attempt AS text) FROM inbox_parked_attempt ORDER BY id")
        .await;
    let newest: Vec<String> = (21..=70).map(|attempt: i32| attempt.to_string()).collect();
    assert_eq!(kept, newest);
}
