//! What a consumer does with what it can't handle, and when it stops.

#![allow(clippy::unwrap_used)]

mod consumer_support;

use std::sync::Arc;
use std::time::Duration;

use consumer_support::*;
use outbox_runtime::Message;
use outbox_runtime::health::Health;
use outbox_runtime::inbox::{ConsumerError, OnUnhandled, OnUnreadable};
use outbox_runtime::prelude::*;
use outbox_tests::{Answer, Fixture, Postman, TestDatabase, message, on_both_databases};
use tokio::sync::Semaphore;

on_both_databases!(
    an_event_that_nobody_takes_is_acknowledged_and_counted,
    an_event_that_nobody_takes_can_be_parked,
    what_is_no_message_is_kept_whatever_is_said_of_it,
    a_version_that_nobody_reads_is_parked,
    a_version_that_nobody_reads_can_be_discarded,
    a_payload_that_does_not_fit_is_a_permanent_failure,
    a_stopping_consumer_finishes_its_work_and_gives_back_the_rest,
    a_handler_that_outlives_the_deadline_is_cancelled_and_leaves_nothing,
    a_dropped_consumer_leaves_nothing,
    a_broker_that_is_down_is_waited_for,
    a_broker_that_answers_nothing_holds_up_nothing,
    handlers_work_side_by_side_up_to_the_limit,
);

fn unknown() -> Message {
    let mut message = message(&paid("a", 100), "order-1", 1);
    message.metadata.event_type = "money.burnt".to_owned();
    message
}

fn too_new() -> Message {
    let mut message = message(&paid("a", 100), "order-1", 1);
    message.metadata.schema_version = 2;
    message
}

async fn an_event_that_nobody_takes_is_acknowledged_and_counted<DB>(fixture: Fixture<DB>)
where
    DB: TestDatabase + Stores<Account>,
{
    let (postman, script) = (Postman::new(), Script::default());
    let running = Running::start(consumer(&fixture, &postman, &script, &[CREDIT]));
    let answer = postman.deliver(&unknown()).await.unwrap();
    assert_eq!(answer, Answer::Acknowledged);
    assert_eq!(running.consumer.counts().unhandled, 1);
    assert!(running.consumer.health().get().is_healthy());
}

async fn an_event_that_nobody_takes_can_be_parked<DB>(fixture: Fixture<DB>)
where
    DB: TestDatabase + Stores<Account>,
{
    let (postman, script) = (Postman::new(), Script::default());
    let consumer = consumer(&fixture, &postman, &script, &[CREDIT])
        .with_options(options().on_unhandled(OnUnhandled::Park));
    let running = Running::start(consumer);
    let answer = postman.deliver(&unknown());
    let health = running.consumer.health();
    let health = health.wait_for(|health| !health.is_healthy()).await;
    assert!(health.to_string().contains("money.burnt"), "{health}");
    assert_eq!(answer.await.unwrap(), Answer::Acknowledged);
    assert!(running.stop().await.is_ok());
    let kept = fixture
        .texts("SELECT consumer || '|' || state || '|' || payload FROM inbox_parked")
        .await;
    assert_eq!(kept, [format!("|dead|{}", unknown().payload)]);
}

/// The reason comes from outside, so it may hold what a database does not take, or the content.
async fn what_is_no_message_is_kept_whatever_is_said_of_it<DB>(fixture: Fixture<DB>)
where
    DB: TestDatabase + Stores<Account>,
{
    open_accounts(&fixture, &["a"]).await;
    let (postman, script) = (Postman::new(), Script::default());
    let batching =
        consumer(&fixture, &postman, &script, &[CREDIT]).with_options(options().batch(8));
    let running = Running::start(batching);
    let mut none = message(&paid("a", 100), "order-1", 1);
    none.metadata.aggregate = None;
    let reason = format!("a NUL \0, a tab \t and the content {}", none.payload);
    let answer = postman.deliver_malformed(&none, &reason);
    assert_eq!(answer.await.unwrap(), Answer::Acknowledged);
    // It comes again, and so does a good one.
    let answer = postman.deliver_malformed(&none, &reason);
    assert_eq!(answer.await.unwrap(), Answer::Acknowledged);
    let answer = postman.deliver(&message(&paid("a", 100), "order-1", 2));
    assert_eq!(answer.await.unwrap(), Answer::Acknowledged);
    assert!(running.stop().await.is_ok());
    let kept = fixture
        .texts("SELECT consumer || '|' || state || '|' || payload FROM inbox_parked")
        .await;
    assert_eq!(kept, [format!("|dead|{}", none.payload)]);
    let cause = fixture.texts("SELECT last_cause FROM inbox_parked").await;
    assert!(!cause[0].contains(&none.payload), "{cause:?}");
    assert!(cause[0].contains("a NUL"), "{cause:?}");
    assert_eq!(balance(&fixture, "a").await, 100);
}

async fn a_version_that_nobody_reads_is_parked<DB>(fixture: Fixture<DB>)
where
    DB: TestDatabase + Stores<Account>,
{
    let (postman, script) = (Postman::new(), Script::default());
    let running = Running::start(consumer(&fixture, &postman, &script, &[CREDIT, BONUS]));
    let answer = postman.deliver(&too_new());
    let health = running.consumer.health();
    let both = |health: &Health| {
        let text = health.to_string();
        [CREDIT, BONUS]
            .iter()
            .all(|consumer| text.contains(consumer))
    };
    let health = health.wait_for(both).await;
    assert!(health.to_string().contains("v2"), "{health}");
    assert_eq!(running.consumer.counts().unreadable, 2);
    assert_eq!(answer.await.unwrap(), Answer::Acknowledged);
    let health = running.consumer.health();
    assert!(running.stop().await.is_ok());
    assert!(health.get().is_healthy());
    let kept = fixture
        .texts(
            "SELECT consumer || '|' || state || '|' || payload FROM inbox_parked ORDER BY consumer",
        )
        .await;
    let payload = too_new().payload;
    assert_eq!(
        kept,
        [BONUS, CREDIT].map(|consumer| format!("{consumer}|dead|{payload}"))
    );
}

async fn a_version_that_nobody_reads_can_be_discarded<DB>(fixture: Fixture<DB>)
where
    DB: TestDatabase + Stores<Account>,
{
    let (postman, script) = (Postman::new(), Script::default());
    let consumer = consumer(&fixture, &postman, &script, &[CREDIT])
        .with_options(options().on_unreadable(OnUnreadable::Discard));
    let running = Running::start(consumer);
    let answer = postman.deliver(&too_new()).await.unwrap();
    assert_eq!(answer, Answer::Acknowledged);
    assert_eq!(running.consumer.counts().unreadable, 1);
    assert_eq!(inbox(&fixture).await, 0);
}

async fn a_payload_that_does_not_fit_is_a_permanent_failure<DB>(fixture: Fixture<DB>)
where
    DB: TestDatabase + Stores<Account>,
{
    open_accounts(&fixture, &["a"]).await;
    let (postman, script) = (Postman::new(), Script::default());
    let running = Running::start(consumer(&fixture, &postman, &script, &[CREDIT]));
    let mut message = message(&paid("a", 100), "order-1", 1);
    message.payload = r#"{"account":"secret-account"}"#.to_owned();
    let answer = postman.deliver(&message);
    let health = running.consumer.health();
    let health = health.wait_for(|health| !health.is_healthy()).await;
    assert!(health.to_string().contains("money.paid v1"), "{health}");
    assert!(!health.to_string().contains("secret-account"), "{health}");
    assert!(running.stop().await.is_ok());
    assert_eq!(answer.await.unwrap(), Answer::Acknowledged);
    assert_eq!(inbox(&fixture).await, 0);
    let kept = fixture
        .texts("SELECT state || '|' || payload || '|' || last_cause FROM inbox_parked")
        .await
        .concat();
    let (_, cause) = kept
        .strip_prefix("dead|")
        .unwrap()
        .split_once("}|")
        .unwrap();
    assert!(!cause.contains("secret-account"), "{cause}");
}

async fn a_stopping_consumer_finishes_its_work_and_gives_back_the_rest<DB>(fixture: Fixture<DB>)
where
    DB: TestDatabase + Stores<Account>,
{
    open_accounts(&fixture, &["a"]).await;
    let (postman, script) = (Postman::new(), Script::default());
    let gate = Arc::new(Semaphore::new(0));
    script.set(CREDIT, [Act::WaitFor(Arc::clone(&gate))]);
    let consumer =
        consumer(&fixture, &postman, &script, &[CREDIT]).with_options(options().concurrency(1));
    let running = Running::start(consumer);
    let in_work = postman.deliver(&message(&paid("a", 100), "order-1", 1));
    let behind_it = postman.deliver(&message(&paid("a", 100), "order-1", 2));
    script.wait_for_attempts(1).await;
    // A message that waits for its turn comes back as soon as the consumer stops, so that tells when.
    let without_a_turn = postman.deliver(&message(&paid("a", 100), "order-2", 1));
    let stopping = tokio::spawn(running.stop());
    assert_eq!(without_a_turn.await.unwrap(), Answer::GivenBack);
    gate.add_permits(1);
    assert!(stopping.await.unwrap().is_ok());
    assert_eq!(in_work.await.unwrap(), Answer::Acknowledged);
    assert_eq!(behind_it.await.unwrap(), Answer::GivenBack);
    assert_eq!(balance(&fixture, "a").await, 100);
}

async fn a_handler_that_outlives_the_deadline_is_cancelled_and_leaves_nothing<DB>(
    fixture: Fixture<DB>,
) where
    DB: TestDatabase + Stores<Account>,
{
    open_accounts(&fixture, &["a"]).await;
    let (postman, script) = (Postman::new(), Script::default());
    script.set(CREDIT, [Act::WaitFor(Arc::new(Semaphore::new(0)))]);
    let consumer = consumer(&fixture, &postman, &script, &[CREDIT])
        .with_options(options().shutdown_deadline(Duration::from_millis(50)));
    let running = Running::start(consumer);
    let answer = postman.deliver(&message(&paid("a", 100), "order-1", 1));
    script.wait_for_attempts(1).await;
    let Err(ConsumerError::Deadline { unfinished, .. }) = running.stop().await else {
        panic!("it stopped in time");
    };
    assert_eq!(unfinished, 1);
    assert_eq!(answer.await.unwrap(), Answer::GivenBack);
    assert_eq!(balance(&fixture, "a").await, 0);
    assert_eq!(inbox(&fixture).await, 0);
    assert_eq!(fixture.events().await, 0);
}

async fn a_dropped_consumer_leaves_nothing<DB>(fixture: Fixture<DB>)
where
    DB: TestDatabase + Stores<Account>,
{
    open_accounts(&fixture, &["a"]).await;
    let (postman, script) = (Postman::new(), Script::default());
    script.set(CREDIT, [Act::WaitFor(Arc::new(Semaphore::new(0)))]);
    let first = consumer(&fixture, &postman, &script, &[CREDIT]);
    let message = message(&paid("a", 100), "order-1", 1);
    let answer = postman.deliver(&message);
    tokio::select! {
        _ = first.run_until(std::future::pending()) => panic!("it ended"),
        () = script.wait_for_attempts(1) => {}
    }
    assert_eq!(answer.await.unwrap(), Answer::GivenBack);
    assert_eq!(balance(&fixture, "a").await, 0);

    let _second = Running::start(consumer(&fixture, &postman, &script, &[CREDIT]));
    let answer = postman.deliver(&message).await.unwrap();
    assert_eq!(answer, Answer::Acknowledged);
    assert_eq!(balance(&fixture, "a").await, 100);
}

async fn a_broker_that_answers_nothing_holds_up_nothing<DB>(fixture: Fixture<DB>)
where
    DB: TestDatabase + Stores<Account>,
{
    open_accounts(&fixture, &["a"]).await;
    let (postman, script) = (Postman::new(), Script::default());
    postman.set_silent(true);
    let consumer = consumer(&fixture, &postman, &script, &[CREDIT])
        .with_options(options().broker_timeout(Duration::from_millis(50)));
    let running = Running::start(consumer);
    let health = running.consumer.health();
    let degraded = health.wait_for(|health| !health.is_healthy()).await;
    assert!(
        degraded.to_string().contains("did not answer"),
        "{degraded}"
    );
    postman.set_silent(false);
    health.wait_for(|health| health.is_healthy()).await;
    // An acknowledgement that is never answered does not hold up what comes behind.
    let first = message(&paid("a", 1), "order-1", 1);
    postman.set_silent(true);
    let answer = postman.deliver(&first);
    postman.deliver(&message(&paid("a", 1), "order-1", 2));
    running.wait_for_handled(2).await;
    assert_eq!(answer.await, Ok(Answer::GivenBack));
    postman.set_silent(false);
    assert_eq!(postman.deliver(&first).await, Ok(Answer::Acknowledged));
    assert_eq!(balance(&fixture, "a").await, 2);
}

async fn a_broker_that_is_down_is_waited_for<DB>(fixture: Fixture<DB>)
where
    DB: TestDatabase + Stores<Account>,
{
    open_accounts(&fixture, &["a"]).await;
    let (postman, script) = (Postman::new(), Script::default());
    postman.set_down(true);
    let running = Running::start(consumer(&fixture, &postman, &script, &[CREDIT]));
    eventually(|| postman.refused() >= 3).await;
    let health = running.consumer.health();
    assert!(health.get().to_string().contains("connection refused"));
    let answer = postman.deliver(&message(&paid("a", 100), "order-1", 1));
    postman.set_down(false);
    assert_eq!(answer.await.unwrap(), Answer::Acknowledged);
    assert!(health.get().is_healthy());
}

async fn handlers_work_side_by_side_up_to_the_limit<DB>(fixture: Fixture<DB>)
where
    DB: TestDatabase + Stores<Account>,
{
    open_accounts(&fixture, &["a", "b", "c"]).await;
    let (postman, script) = (Postman::new(), Script::default());
    let gate = Arc::new(Semaphore::new(0));
    script.set(CREDIT, vec![Act::WaitFor(Arc::clone(&gate)); 3]);
    let consumer =
        consumer(&fixture, &postman, &script, &[CREDIT]).with_options(options().concurrency(2));
    let _running = Running::start(consumer);
    let answers = ["a", "b", "c"].map(|id| postman.deliver(&message(&paid(id, 1), id, 1)));
    // One writer at a time is all that SQLite has; PostgreSQL has as many as the limit allows.
    let at_once = if DB::NAME == "SQLite" { 1 } else { 2 };
    script.wait_for_attempts(at_once).await;
    for _ in 0..50 {
        tokio::task::yield_now().await;
    }
    assert_eq!(script.attempts().len(), at_once);
    gate.add_permits(3);
    for answer in answers {
        assert_eq!(answer.await.unwrap(), Answer::Acknowledged);
    }
}
