//! What only a database server can do to a consumer.
#![cfg(feature = "postgres")]
#![allow(clippy::unwrap_used)]

mod consumer_support;

use std::sync::Arc;

use consumer_support::*;
use outbox_runtime::store::{Claim, InboxStore, Names};
use outbox_tests::{Answer, Postman, message, postgres};
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
    let counts = running.consumer.counts();
    assert_eq!((counts.handled, counts.failed_attempts), (1, 1));
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
    let sql = Postgres::claim_sql(&Names::default());
    let claim = Claim {
        consumer: "c",
        idempotency_key: "k",
        metadata: &message.metadata,
    };
    let mut connection = fixture.pool.acquire().await.unwrap();
    let mut transaction = connection.begin().await.unwrap();
    assert!(
        Postgres::claim(&mut transaction, &sql, claim)
            .await
            .unwrap()
    );
    assert!(
        !Postgres::claim(&mut transaction, &sql, claim)
            .await
            .unwrap()
    );
    transaction.execute("SELECT 1").await.unwrap();
    transaction.commit().await.unwrap();
    assert_eq!(inbox(&fixture).await, 1);
}
