//! Every message has its effect once for each consumer, whatever fails.

#![allow(clippy::unwrap_used)]

mod consumer_support;

use std::sync::Arc;

use consumer_support::*;
use outbox_runtime::health::Health;
use outbox_runtime::prelude::*;
use outbox_tests::{Answer, Fixture, Postman, TestDatabase, message, on_both_databases};
use tokio::sync::Semaphore;

on_both_databases!(
    a_message_delivered_five_times_at_once_has_one_effect,
    a_message_delivered_again_later_is_a_duplicate,
    a_second_delivery_joins_the_one_in_work,
    two_consumers_of_one_message_have_one_effect_each,
    a_failed_attempt_leaves_nothing_and_is_repeated,
    a_panic_is_a_failed_attempt,
    a_permanent_failure_is_never_dropped_and_degrades_health,
    a_failing_message_holds_its_own_aggregate_only,
    the_second_attempt_has_the_context_of_the_first,
    without_an_inbox_nothing_is_acknowledged,
);

async fn a_message_delivered_five_times_at_once_has_one_effect<DB>(fixture: Fixture<DB>)
where
    DB: TestDatabase + Stores<Account>,
{
    open_accounts(&fixture, &["a"]).await;
    let script = Script::default();
    let message = message(&paid("a", 100), "order-1", 1);
    // Five consumers, as in five processes: nothing but the database joins them.
    let mut consumers = Vec::new();
    let mut answers = Vec::new();
    for _ in 0..5 {
        let postman = Postman::new();
        answers.push(postman.deliver(&message));
        let consumer = consumer(&fixture, &postman, &script, &[CREDIT]);
        consumers.push(Running::start(consumer));
    }
    for answer in answers {
        assert_eq!(answer.await.unwrap(), Answer::Acknowledged);
    }
    assert_eq!(balance(&fixture, "a").await, 100);
    assert_eq!(fixture.events().await, 1);
    assert_eq!(inbox(&fixture).await, 1);
    let counts = consumers.iter().map(|running| running.consumer.counts());
    let (handled, duplicates) = counts.fold((0, 0), |sum, one| {
        (sum.0 + one.handled, sum.1 + one.duplicates)
    });
    assert_eq!((handled, duplicates), (1, 4));
}

async fn a_message_delivered_again_later_is_a_duplicate<DB>(fixture: Fixture<DB>)
where
    DB: TestDatabase + Stores<Account>,
{
    open_accounts(&fixture, &["a"]).await;
    let (postman, script) = (Postman::new(), Script::default());
    let running = Running::start(consumer(&fixture, &postman, &script, &[CREDIT]));
    let message = message(&paid("a", 100), "order-1", 1);
    for _ in 0..5 {
        let answer = postman.deliver(&message).await.unwrap();
        assert_eq!(answer, Answer::Acknowledged);
    }
    assert_eq!(balance(&fixture, "a").await, 100);
    assert_eq!(script.attempts().len(), 1);
    let counts = running.consumer.counts();
    assert_eq!((counts.handled, counts.duplicates), (1, 4));
    assert_eq!(counts.failed_attempts, 0);
}

async fn a_second_delivery_joins_the_one_in_work<DB>(fixture: Fixture<DB>)
where
    DB: TestDatabase + Stores<Account>,
{
    open_accounts(&fixture, &["a"]).await;
    let (postman, script) = (Postman::new(), Script::default());
    let gate = Arc::new(Semaphore::new(0));
    script.set(CREDIT, [Act::WaitFor(Arc::clone(&gate))]);
    let running = Running::start(consumer(&fixture, &postman, &script, &[CREDIT]));
    let message = message(&paid("a", 100), "order-1", 1);
    let first = postman.deliver(&message);
    script.wait_for_attempts(1).await;
    let second = postman.deliver(&message);
    eventually(|| running.consumer.counts().duplicates == 1).await;
    gate.add_permits(1);
    assert_eq!(first.await.unwrap(), Answer::Acknowledged);
    assert_eq!(second.await.unwrap(), Answer::Acknowledged);
    assert_eq!(balance(&fixture, "a").await, 100);
}

async fn two_consumers_of_one_message_have_one_effect_each<DB>(fixture: Fixture<DB>)
where
    DB: TestDatabase + Stores<Account>,
{
    open_accounts(&fixture, &["a"]).await;
    let (postman, script) = (Postman::new(), Script::default());
    // The one that is done is not asked again when the other fails.
    script.set(BONUS, vec![Act::Fail(FailureKind::Transient); 3]);
    let running = Running::start(consumer(&fixture, &postman, &script, &[CREDIT, BONUS]));
    let message = message(&paid("a", 100), "order-1", 1);
    let answer = postman.deliver(&message).await.unwrap();
    assert_eq!(answer, Answer::Acknowledged);
    running.wait_for_handled(2).await;
    assert_eq!(balance(&fixture, "a").await, 101);
    assert_eq!(inbox(&fixture).await, 2);
    let counts = running.consumer.counts();
    assert_eq!((counts.handled, counts.duplicates), (2, 0));
    assert_eq!(counts.failed_attempts, 3);

    let again = postman.deliver(&message).await.unwrap();
    assert_eq!(again, Answer::Acknowledged);
    assert_eq!(balance(&fixture, "a").await, 101);
    assert_eq!(running.consumer.counts().duplicates, 2);
}

async fn a_failed_attempt_leaves_nothing_and_is_repeated<DB>(fixture: Fixture<DB>)
where
    DB: TestDatabase + Stores<Account>,
{
    open_accounts(&fixture, &["a"]).await;
    let (postman, script) = (Postman::new(), Script::default());
    let gate = Arc::new(Semaphore::new(0));
    script.set(
        CREDIT,
        [
            Act::Fail(FailureKind::Transient),
            Act::Fail(FailureKind::Transient),
            Act::WaitFor(Arc::clone(&gate)),
        ],
    );
    let running = Running::start(consumer(&fixture, &postman, &script, &[CREDIT]));
    let answer = postman.deliver(&message(&paid("a", 100), "order-1", 1));
    assert_eq!(answer.await.unwrap(), Answer::Acknowledged);
    script.wait_for_attempts(3).await;
    assert_eq!(parked(&fixture).await, 1);
    assert_eq!(balance(&fixture, "a").await, 0);
    assert_eq!(fixture.events().await, 0);
    assert_eq!(inbox(&fixture).await, 0);
    gate.add_permits(1);
    running.wait_for_handled(1).await;
    assert_eq!(parked(&fixture).await, 0);
    assert_eq!(balance(&fixture, "a").await, 100);
    assert_eq!(fixture.events().await, 1);
    assert_eq!(running.consumer.counts().failed_attempts, 2);
}

async fn a_panic_is_a_failed_attempt<DB>(fixture: Fixture<DB>)
where
    DB: TestDatabase + Stores<Account>,
{
    open_accounts(&fixture, &["a"]).await;
    let (postman, script) = (Postman::new(), Script::default());
    script.set(CREDIT, [Act::Panic, Act::Panic]);
    let running = Running::start(consumer(&fixture, &postman, &script, &[CREDIT]));
    let answer = postman.deliver(&message(&paid("a", 100), "order-1", 1));
    assert_eq!(answer.await.unwrap(), Answer::Acknowledged);
    running.wait_for_handled(1).await;
    assert_eq!(balance(&fixture, "a").await, 100);
    assert_eq!(running.consumer.counts().failed_attempts, 2);
    assert!(running.stop().await.is_ok());
}

async fn a_permanent_failure_is_never_dropped_and_degrades_health<DB>(fixture: Fixture<DB>)
where
    DB: TestDatabase + Stores<Account>,
{
    open_accounts(&fixture, &["a"]).await;
    let (postman, script) = (Postman::new(), Script::default());
    script.set(CREDIT, [Act::Fail(FailureKind::Permanent)]);
    let running = Running::start(consumer(&fixture, &postman, &script, &[CREDIT]));
    let message = message(&paid("a", 100), "order-1", 1);
    let answer = postman.deliver(&message).await.unwrap();
    assert_eq!(answer, Answer::Acknowledged);
    let health = running.consumer.health();
    let Health::Degraded { reasons } = health.wait_for(|health| !health.is_healthy()).await else {
        panic!("healthy with a permanent failure");
    };
    assert!(reasons[0].contains(&message.metadata.message_id.to_string()));
    assert!(reasons[0].contains("scripted: Permanent"), "{reasons:?}");
    assert_eq!(parked(&fixture).await, 1);
    assert_eq!(running.consumer.counts().dead, 1);
    requeue(&fixture, "1 = 1").await;
    running.wait_for_handled(1).await;
    assert_eq!(balance(&fixture, "a").await, 100);
    assert!(health.wait_for(Health::is_healthy).await.is_healthy());
}

async fn a_failing_message_holds_its_own_aggregate_only<DB>(fixture: Fixture<DB>)
where
    DB: TestDatabase + Stores<Account>,
{
    open_accounts(&fixture, &["a", "b"]).await;
    let (postman, script) = (Postman::new(), Script::default());
    script.set(CREDIT, vec![Act::Fail(FailureKind::Transient); 4]);
    let running = Running::start(consumer(&fixture, &postman, &script, &[CREDIT]));
    let mut answers = Vec::new();
    for sequence in 1..=10 {
        for (order, account) in [("order-1", "a"), ("order-2", "b")] {
            answers.push(postman.deliver(&message(&paid(account, 1), order, sequence)));
        }
    }
    for answer in answers {
        assert_eq!(answer.await.unwrap(), Answer::Acknowledged);
    }
    running.wait_for_handled(20).await;
    assert_eq!(balance(&fixture, "a").await, 10);
    assert_eq!(balance(&fixture, "b").await, 10);
    for order in ["order-1", "order-2"] {
        let mut sequences: Vec<_> = script
            .attempts()
            .into_iter()
            .filter(|attempt| attempt.aggregate_id == order)
            .map(|attempt| attempt.sequence)
            .collect();
        assert!(sequences.is_sorted(), "{sequences:?}");
        sequences.dedup();
        assert_eq!(sequences, (1..=10).collect::<Vec<_>>());
    }
}

async fn the_second_attempt_has_the_context_of_the_first<DB>(fixture: Fixture<DB>)
where
    DB: TestDatabase + Stores<Account>,
{
    open_accounts(&fixture, &["a"]).await;
    let (postman, script) = (Postman::new(), Script::default());
    script.set(CREDIT, [Act::Fail(FailureKind::Transient)]);
    let running = Running::start(consumer(&fixture, &postman, &script, &[CREDIT]));
    let message = message(&paid("a", 100), "order-1", 1);
    postman.deliver(&message).await.unwrap();
    running.wait_for_handled(1).await;
    let attempts = script.attempts();
    assert_eq!(attempts[0], attempts[1]);
    assert_eq!(
        attempts[0].context,
        MessageContext::caused_by(&message.metadata)
    );
    let stored = fixture
        .texts(
            "SELECT traceparent || ' ' || tracestate || ' ' || correlation_id || ' ' || causation_id \
             FROM outbox_message",
        )
        .await;
    let expected = format!(
        "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01 vendor=1 correlation-order-1 {}",
        message.metadata.message_id
    );
    assert_eq!(stored, [expected]);
}

async fn without_an_inbox_nothing_is_acknowledged<DB>(fixture: Fixture<DB>)
where
    DB: TestDatabase + Stores<Account>,
{
    open_accounts(&fixture, &["a"]).await;
    fixture
        .run_sql("ALTER TABLE inbox_message RENAME TO hidden")
        .await;
    let (postman, script) = (Postman::new(), Script::default());
    let running = Running::start(consumer(&fixture, &postman, &script, &[CREDIT]));
    let mut answer = postman.deliver(&message(&paid("a", 100), "order-1", 1));
    eventually(|| running.consumer.counts().failed_attempts >= 6).await;
    assert!(answer.try_recv().is_err(), "it was answered");
    assert!(!running.consumer.health().get().is_healthy());
    assert!(script.attempts().is_empty());
    fixture
        .run_sql("ALTER TABLE hidden RENAME TO inbox_message")
        .await;
    assert_eq!(answer.await.unwrap(), Answer::Acknowledged);
    running.wait_for_handled(1).await;
    assert_eq!(balance(&fixture, "a").await, 100);
}
