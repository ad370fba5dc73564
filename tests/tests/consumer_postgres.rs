//! What only a database server can do to a consumer.
#![cfg(feature = "postgres")]
#![allow(clippy::unwrap_used)]

mod consumer_support;

use std::sync::Arc;
use std::time::Duration;

use consumer_support::*;
use outbox_runtime::store::{Claim, Claimed, InboxStore, Names};
use outbox_tests::{Answer, Postman, message, postgres};
use sqlx::postgres::PgPoolOptions;
use sqlx::{Connection, Executor, Postgres};
use tokio::sync::Semaphore;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_connection_that_is_killed_in_a_handler_costs_an_attempt_and_no_effect() {
    let Some(fixture) = postgres().await else {
        return;
    };
    open_accounts(&fixture, &["a"]).await;
    let (postman, script) = (Postman::new(), Script::default());
    let gate = Arc::new(Semaphore::new(0));
    script.set(CREDIT, [Act::WaitFor(Arc::clone(&gate))]);
    let running = Running::start(consumer(&fixture, &postman, &script, &[CREDIT]));
    let mut answer = postman.deliver(&message(&paid("a", 100), "order-1", 1));
    script.wait_for_attempts(1).await;
    let killed = fixture
        .number(
            "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity \
             WHERE datname = current_database() AND state = 'idle in transaction'",
        )
        .await;
    assert_eq!(killed, 1);
    assert!(answer.try_recv().is_err(), "it was answered");
    gate.add_permits(1);
    assert_eq!(answer.await.unwrap(), Answer::Acknowledged);
    running.wait_for_handled(1).await;
    assert_eq!(running.consumer.counts().failed_attempts, 1);
    assert_eq!(balance(&fixture, "a").await, 100);
    assert_eq!(fixture.events().await, 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_version_conflict_is_tried_again_at_once() {
    let Some(fixture) = postgres().await else {
        return;
    };
    open_accounts(&fixture, &["a"]).await;
    let (postman, script) = (Postman::new(), Script::default());
    let gate = Arc::new(Semaphore::new(0));
    script.set(CREDIT, [Act::WaitFor(Arc::clone(&gate))]);
    let running = Running::start(consumer(&fixture, &postman, &script, &[CREDIT]));
    let answer = postman.deliver(&message(&paid("a", 100), "order-1", 1));
    script.wait_for_attempts(1).await;
    // Somebody else changes the account after the handler has loaded it.
    fixture
        .run_sql("UPDATE accounts SET balance = 5, version = version + 1")
        .await;
    gate.add_permits(1);
    assert_eq!(answer.await.unwrap(), Answer::Acknowledged);
    assert_eq!(balance(&fixture, "a").await, 105);
    assert_eq!(running.consumer.counts().failed_attempts, 1);
}

#[tokio::test]
async fn a_duplicate_does_not_abort_the_transaction() {
    let Some(fixture) = postgres().await else {
        return;
    };
    let message = message(&paid("a", 100), "order-1", 1);
    let queries = Postgres::inbox_queries(&Names::default());
    let claim = Claim {
        consumer: "c",
        idempotency_key: "k",
        lane: Some("l"),
        metadata: &message.metadata,
    };
    let mut connection = fixture.pool.acquire().await.unwrap();
    let mut transaction = connection.begin().await.unwrap();
    for expected in [Claimed::First, Claimed::Duplicate] {
        let claimed = Postgres::claim(&mut transaction, &queries, claim)
            .await
            .unwrap();
        assert_eq!(claimed, expected);
    }
    transaction.execute("SELECT 1").await.unwrap();
    transaction.commit().await.unwrap();
    assert_eq!(inbox(&fixture).await, 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn connections_that_are_killed_again_and_again_cost_no_effect_and_repeat_none() {
    let Some(fixture) = postgres().await else {
        return;
    };
    let ids = ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j"];
    open_accounts(&fixture, &ids).await;
    let (postman, script) = (Postman::new(), Script::default());
    let running = Running::start(consumer(&fixture, &postman, &script, &[CREDIT, BONUS]));
    let killer = PgPoolOptions::new()
        .max_connections(1)
        .connect(&fixture.url)
        .await
        .unwrap();
    let killing = tokio::spawn(async move {
        for _ in 0..30 {
            sqlx::query(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity \
                 WHERE datname = current_database() AND pid <> pg_backend_pid()",
            )
            .execute(&killer)
            .await
            .unwrap();
            tokio::time::sleep(Duration::from_millis(30)).await;
        }
    });
    let mut answers = Vec::new();
    for sequence in 1..=10 {
        for account in ids {
            let message = message(&paid(account, 100), account, sequence);
            answers.push(postman.deliver(&message));
        }
    }
    for answer in answers {
        assert_eq!(answer.await.unwrap(), Answer::Acknowledged);
    }
    killing.await.unwrap();
    running.wait_for_handled(200).await;
    let total = fixture
        .number("SELECT sum(balance)::bigint FROM accounts")
        .await;
    assert_eq!(total, 100 * 101);
    let counts = running.consumer.counts();
    assert!(counts.failed_attempts > 0, "nothing was killed midway");
    assert_eq!((counts.handled, counts.duplicates), (200, 0), "{counts:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_messages_that_race_for_one_aggregate_all_get_their_turn() {
    let Some(fixture) = postgres().await else {
        return;
    };
    open_accounts(&fixture, &["a"]).await;
    let (postman, script) = (Postman::new(), Script::default());
    let running = Running::start(consumer(&fixture, &postman, &script, &[CREDIT, BONUS]));
    let answers: Vec<_> = (0..100)
        .map(|n| postman.deliver(&message(&paid("a", 100), &format!("order-{n}"), 1)))
        .collect();
    for answer in answers {
        assert_eq!(answer.await.unwrap(), Answer::Acknowledged);
    }
    running.wait_for_handled(200).await;
    assert_eq!(balance(&fixture, "a").await, 100 * 101);
}

/// The lane of a claim can become free while it is looked at: that makes no duplicate of a message
/// that nobody has handled.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lane_that_becomes_free_midway_makes_no_duplicate() {
    let Some(fixture) = postgres().await else {
        return;
    };
    let message = message(&paid("a", 100), "order-1", 1);
    fixture
        .run_sql(
            "INSERT INTO inbox_parked (consumer, lane, state, message_id, event_type, schema_version, \
                 correlation_id, producer, occurred_at, occurred_nanos, payload) \
             VALUES ('c', 'lane', 'failing', gen_random_uuid(), 'e', 1, 'x', 'p', now(), 0, '{}')",
        )
        .await;
    let pool = fixture.pool.clone();
    let toggling = tokio::spawn(async move {
        loop {
            sqlx::query("UPDATE inbox_parked SET holds = NOT holds")
                .execute(&pool)
                .await
                .unwrap();
        }
    });
    let queries = Postgres::inbox_queries(&Names::default());
    let mut connection = fixture.pool.acquire().await.unwrap();
    let (mut first, mut held) = (0, 0);
    for n in 0..3_000 {
        let key = n.to_string();
        let claim = Claim {
            consumer: "c",
            idempotency_key: &key,
            lane: Some("lane"),
            metadata: &message.metadata,
        };
        match Postgres::claim(&mut connection, &queries, claim)
            .await
            .unwrap()
        {
            Claimed::First => first += 1,
            Claimed::Held => held += 1,
            Claimed::Duplicate => panic!("{n} was never handled"),
        }
    }
    toggling.abort();
    assert!(first > 0 && held > 0, "{first} and {held}: nothing changed");
}
