//! What can't be handled waits in the database, in order, and is tried again from there.

#![allow(clippy::unwrap_used, unreachable_pub)]

mod consumer_support;
#[path = "consumer_parking/stored.rs"]
mod stored;

use std::time::Duration;

use consumer_support::*;
use outbox_runtime::Message;
use outbox_runtime::health::Health;
use outbox_runtime::inbox::OnUnhandled;
use outbox_runtime::prelude::*;
use outbox_runtime::retry::{OnDead, RetryPolicy};
use outbox_tests::{Answer, Fixture, Postman, TestDatabase, message, on_both_databases};

on_both_databases!(
    a_poison_message_among_a_thousand_holds_its_own_lane_only,
    what_is_behind_a_parked_message_follows_in_order,
    a_parked_message_is_tried_again_after_a_restart,
    a_dead_message_waits_with_all_behind_it_until_it_is_requeued,
    a_kept_cause_is_clean_and_holds_no_payload,
    a_lane_can_go_on_without_its_dead_message,
    each_consumer_parks_for_itself,
    two_instances_keep_order_and_have_one_effect_each,
    a_message_that_is_delivered_again_after_it_was_parked_is_absorbed,
    what_can_not_be_parked_is_not_acknowledged,
    a_message_without_a_key_is_dead_and_keeps_its_bytes,
    an_event_that_nobody_took_finds_its_handlers_when_it_is_requeued,
);

/// Its key is in the payload, so a payload that can't be read has none.
#[idempotent_handler(consumer = "ledger.keyed", key = "{event.account}:{sequence}")]
async fn keyed<DB: Backend>(
    _: Envelope<Paid>,
    _: &mut UnitOfWork<'_, DB>,
) -> Result<(), LedgerError> {
    Ok(())
}

/// The handler fails as long as this account does not exist.
const MISSING: &str = "missing";

async fn mend<DB: TestDatabase>(fixture: &Fixture<DB>) {
    fixture
        .run_sql("INSERT INTO accounts VALUES ('missing', 0, 1)")
        .await;
}

async fn acknowledged(postman: &Postman, message: &Message) {
    let answer = postman.deliver(message).await.unwrap();
    assert_eq!(answer, Answer::Acknowledged);
}

/// The sequences of an aggregate's attempts, in order.
fn sequences(script: &Script, consumer: &str, aggregate_id: &str) -> Vec<i64> {
    script
        .attempts()
        .into_iter()
        .filter(|attempt| attempt.consumer == consumer && attempt.aggregate_id == aggregate_id)
        .map(|attempt| attempt.sequence)
        .collect()
}

/// Each row as `consumer|sequence|state|attempts`.
async fn rows<DB: TestDatabase>(fixture: &Fixture<DB>) -> Vec<String> {
    fixture
        .texts(
            "SELECT consumer || '|' || sequence || '|' || state || '|' || attempts \
             FROM inbox_parked ORDER BY id",
        )
        .await
}

async fn a_poison_message_among_a_thousand_holds_its_own_lane_only<DB>(fixture: Fixture<DB>)
where
    DB: TestDatabase + Stores<Account>,
{
    let accounts: Vec<String> = (0..50).map(|n| format!("a{n}")).collect();
    let ids: Vec<&str> = accounts.iter().map(String::as_str).collect();
    open_accounts(&fixture, &ids).await;
    let (postman, script) = (Postman::new(), Script::default());
    let running = Running::start(consumer(&fixture, &postman, &script, &[CREDIT]));
    let mut answers = Vec::new();
    for sequence in 1..=20 {
        for account in &ids {
            // The poison has 12 messages of its lane behind it.
            let is_poison = *account == "a7" && sequence == 8;
            let paid = paid(if is_poison { MISSING } else { account }, 1);
            answers.push(postman.deliver(&message(&paid, account, sequence)));
        }
    }
    for answer in answers {
        assert_eq!(answer.await.unwrap(), Answer::Acknowledged);
    }
    running.wait_for_handled(987).await;
    assert_eq!(parked(&fixture).await, 13);
    assert_eq!(inbox(&fixture).await, 987);
    mend(&fixture).await;
    running.wait_for_handled(1_000).await;
    assert_eq!(parked(&fixture).await, 0);
    let total = fixture
        .number("SELECT CAST(sum(balance) AS bigint) FROM accounts")
        .await;
    assert_eq!(total, 1_000);
    for account in &ids {
        let sequences = sequences(&script, CREDIT, account);
        assert_eq!(sequences, (1..=20).collect::<Vec<_>>(), "{account}");
    }
}

async fn what_is_behind_a_parked_message_follows_in_order<DB>(fixture: Fixture<DB>)
where
    DB: TestDatabase + Stores<Account>,
{
    open_accounts(&fixture, &["a"]).await;
    let (postman, script) = (Postman::new(), Script::default());
    let running = Running::start(consumer(&fixture, &postman, &script, &[CREDIT]));
    acknowledged(&postman, &message(&paid(MISSING, 1), "order-1", 1)).await;
    for sequence in 2..=5 {
        acknowledged(&postman, &message(&paid("a", 1), "order-1", sequence)).await;
    }
    acknowledged(&postman, &message(&paid("a", 1), "order-2", 1)).await;
    running.wait_for_handled(1).await;
    assert_eq!(parked(&fixture).await, 5);
    assert!(sequences(&script, CREDIT, "order-1").is_empty());
    let states = fixture
        .texts("SELECT state FROM inbox_parked ORDER BY id")
        .await;
    assert_eq!(
        states,
        ["failing", "waiting", "waiting", "waiting", "waiting"]
    );
    mend(&fixture).await;
    running.wait_for_handled(6).await;
    assert_eq!(sequences(&script, CREDIT, "order-1"), [1, 2, 3, 4, 5]);
    // The lane flows again.
    let parked_before = running.consumer.counts().parked;
    acknowledged(&postman, &message(&paid("a", 1), "order-1", 6)).await;
    running.wait_for_handled(7).await;
    assert_eq!(running.consumer.counts().parked, parked_before);
}

async fn a_parked_message_is_tried_again_after_a_restart<DB>(fixture: Fixture<DB>)
where
    DB: TestDatabase + Stores<Account>,
{
    open_accounts(&fixture, &["a"]).await;
    let (postman, script) = (Postman::new(), Script::default());
    let running = Running::start(consumer(&fixture, &postman, &script, &[CREDIT]));
    acknowledged(&postman, &message(&paid(MISSING, 1), "order-1", 1)).await;
    acknowledged(&postman, &message(&paid("a", 1), "order-1", 2)).await;
    running.stop().await.unwrap();
    mend(&fixture).await;
    let running = Running::start(consumer(&fixture, &postman, &script, &[CREDIT]));
    running.wait_for_handled(2).await;
    assert_eq!(sequences(&script, CREDIT, "order-1"), [1, 2]);
    assert_eq!(parked(&fixture).await, 0);
    assert_eq!(balance(&fixture, MISSING).await, 1);
}

async fn a_dead_message_waits_with_all_behind_it_until_it_is_requeued<DB>(fixture: Fixture<DB>)
where
    DB: TestDatabase + Stores<Account>,
{
    open_accounts(&fixture, &["a"]).await;
    let (postman, script) = (Postman::new(), Script::default());
    let consumer = consumer(&fixture, &postman, &script, &[CREDIT])
        .with_options(options().retry(RetryPolicy::new().max_attempts(2)));
    let running = Running::start(consumer);
    acknowledged(&postman, &message(&paid(MISSING, 1), "order-1", 1)).await;
    acknowledged(&postman, &message(&paid("a", 1), "order-1", 2)).await;
    let health = running.consumer.health();
    let degraded = health.wait_for(|health| !health.is_healthy()).await;
    assert!(degraded.to_string().contains("1 dead letter"), "{degraded}");
    assert!(
        degraded.to_string().contains("does not exist"),
        "{degraded}"
    );
    let expected = ["ledger.credit|1|dead|2", "ledger.credit|2|waiting|0"];
    assert_eq!(rows(&fixture).await, expected);
    let causes = fixture
        .texts("SELECT attempt || ': ' || cause FROM inbox_parked_attempt ORDER BY id")
        .await;
    assert_eq!(causes.len(), 2);
    assert!(causes[0].starts_with("1: ") && causes[1].starts_with("2: "));
    assert!(causes[1].contains("Account missing"), "{causes:?}");

    // Requeued too early it is dead again, and then it is not.
    requeue(&fixture, "event_type = 'money.paid'").await;
    eventually(|| running.consumer.counts().dead == 2).await;
    assert_eq!(rows(&fixture).await, expected);
    mend(&fixture).await;
    requeue(&fixture, "event_type = 'money.paid'").await;
    running.wait_for_handled(2).await;
    assert_eq!(sequences(&script, CREDIT, "order-1"), [1, 2]);
    assert_eq!(parked(&fixture).await, 0);
    let left = fixture
        .number("SELECT count(*) FROM inbox_parked_attempt")
        .await;
    assert_eq!(left, 0);
    assert!(health.wait_for(Health::is_healthy).await.is_healthy());
}

async fn a_kept_cause_is_clean_and_holds_no_payload<DB>(fixture: Fixture<DB>)
where
    DB: TestDatabase + Stores<Account>,
{
    open_accounts(&fixture, &["a"]).await;
    let (postman, script) = (Postman::new(), Script::default());
    let message = message(&paid("a", 4711), "order-1", 1);
    let said = format!(
        "no\r\n room\u{1b}[31m for {} at https://me:s3cret@bank/x",
        message.payload
    );
    script.set(CREDIT, [Act::FailSaying(said)]);
    let running = Running::start(consumer(&fixture, &postman, &script, &[CREDIT]));
    acknowledged(&postman, &message).await;
    eventually(|| running.consumer.counts().dead == 1).await;
    let causes = fixture
        .texts(
            "SELECT cause FROM inbox_parked_attempt UNION ALL SELECT last_cause FROM inbox_parked",
        )
        .await;
    assert_eq!(causes, ["no room[31m for (payload) at https://bank/x"; 2]);
    let health = running.consumer.health();
    let degraded = health.wait_for(|health| !health.is_healthy()).await;
    let degraded = degraded.to_string();
    assert!(degraded.contains("(payload)"), "{degraded}");
    assert!(!degraded.contains("4711"), "{degraded}");
}

async fn a_lane_can_go_on_without_its_dead_message<DB>(fixture: Fixture<DB>)
where
    DB: TestDatabase + Stores<Account>,
{
    open_accounts(&fixture, &["a"]).await;
    let (postman, script) = (Postman::new(), Script::default());
    let policy = RetryPolicy::new().max_attempts(2).on_dead(OnDead::GoOn);
    let consumer = consumer(&fixture, &postman, &script, &[CREDIT])
        .with_options(options().retry_of(CREDIT, policy));
    let running = Running::start(consumer);
    acknowledged(&postman, &message(&paid(MISSING, 1), "order-1", 1)).await;
    acknowledged(&postman, &message(&paid("a", 1), "order-1", 2)).await;
    running.wait_for_handled(1).await;
    eventually(|| running.consumer.counts().dead == 1).await;
    acknowledged(&postman, &message(&paid("a", 1), "order-1", 3)).await;
    running.wait_for_handled(2).await;
    assert_eq!(rows(&fixture).await, ["ledger.credit|1|dead|2"]);
    mend(&fixture).await;
    requeue(&fixture, "1 = 1").await;
    running.wait_for_handled(3).await;
    assert_eq!(sequences(&script, CREDIT, "order-1"), [2, 3, 1]);
}

async fn each_consumer_parks_for_itself<DB>(fixture: Fixture<DB>)
where
    DB: TestDatabase + Stores<Account>,
{
    open_accounts(&fixture, &["a"]).await;
    let (postman, script) = (Postman::new(), Script::default());
    script.set(BONUS, [Act::Fail(FailureKind::Permanent)]);
    let running = Running::start(consumer(&fixture, &postman, &script, &[CREDIT, BONUS]));
    for sequence in 1..=3 {
        acknowledged(&postman, &message(&paid("a", 100), "order-1", sequence)).await;
    }
    assert_eq!(sequences(&script, CREDIT, "order-1"), [1, 2, 3]);
    assert_eq!(sequences(&script, BONUS, "order-1"), [1]);
    assert_eq!(balance(&fixture, "a").await, 300);
    assert_eq!(
        rows(&fixture).await,
        [
            "ledger.bonus|1|dead|1",
            "ledger.bonus|2|waiting|0",
            "ledger.bonus|3|waiting|0"
        ]
    );
    requeue(&fixture, "1 = 1").await;
    running.wait_for_handled(6).await;
    assert_eq!(sequences(&script, BONUS, "order-1"), [1, 1, 2, 3]);
    assert_eq!(balance(&fixture, "a").await, 303);
}

async fn two_instances_keep_order_and_have_one_effect_each<DB>(fixture: Fixture<DB>)
where
    DB: TestDatabase + Stores<Account>,
{
    let accounts: Vec<String> = (0..10).map(|n| format!("a{n}")).collect();
    let ids: Vec<&str> = accounts.iter().map(String::as_str).collect();
    open_accounts(&fixture, &ids).await;
    let script = Script::default();
    let postmen = [Postman::new(), Postman::new()];
    let running = postmen
        .each_ref()
        .map(|postman| Running::start(consumer(&fixture, postman, &script, &[CREDIT])));
    // A broker that keeps order per key hands out the next message of a key after the one before is
    // acknowledged, to whichever member.
    let lanes = accounts.iter().cloned().map(|account| {
        let postmen = postmen.clone();
        tokio::spawn(async move {
            for sequence in 1..=20_i64 {
                let is_poison = sequence % 7 == 3;
                let paid = paid(if is_poison { MISSING } else { &account }, 1);
                let postman = &postmen[usize::from(sequence % 2 == 0)];
                acknowledged(postman, &message(&paid, &account, sequence)).await;
            }
        })
    });
    for lane in lanes.collect::<Vec<_>>() {
        lane.await.unwrap();
    }
    mend(&fixture).await;
    let handled = || -> u64 {
        let counts = running.iter().map(|running| running.consumer.counts());
        counts.map(|counts| counts.handled).sum()
    };
    eventually(|| handled() >= 200).await;
    assert_eq!(handled(), 200);
    assert_eq!(parked(&fixture).await, 0);
    assert_eq!(inbox(&fixture).await, 200);
    let total = fixture
        .number("SELECT CAST(sum(balance) AS bigint) FROM accounts")
        .await;
    assert_eq!(total, 200);
    for account in &ids {
        // A version conflict of two poisons on one account repeats an attempt, in its place.
        let mut sequences = sequences(&script, CREDIT, account);
        sequences.dedup();
        assert_eq!(sequences, (1..=20).collect::<Vec<_>>(), "{account}");
    }
}

async fn a_message_that_is_delivered_again_after_it_was_parked_is_absorbed<DB>(fixture: Fixture<DB>)
where
    DB: TestDatabase + Stores<Account>,
{
    open_accounts(&fixture, &["a"]).await;
    let (postman, script) = (Postman::new(), Script::default());
    let dying = consumer(&fixture, &postman, &script, &[CREDIT]).with_options(patient());
    let message = message(&paid(MISSING, 1), "order-1", 1);
    let _unheard = postman.deliver(&message);
    // The process ends as soon as the row is there, whether or not the broker was told.
    tokio::select! {
        _ = dying.run_until(std::future::pending()) => panic!("it ended"),
        () = async { while parked(&fixture).await == 0 {} } => {}
    }
    drop(dying);
    let running =
        Running::start(consumer(&fixture, &postman, &script, &[CREDIT]).with_options(patient()));
    acknowledged(&postman, &message).await;
    acknowledged(&postman, &message).await;
    assert_eq!(rows(&fixture).await, ["ledger.credit|1|failing|1"]);
    assert_eq!(running.consumer.counts().duplicates, 2);
    mend(&fixture).await;
    fixture
        .run_sql("UPDATE inbox_parked SET next_attempt_at = parked_at")
        .await;
    running.wait_for_handled(1).await;
    acknowledged(&postman, &message).await;
    assert_eq!(running.consumer.counts().duplicates, 3);
    assert_eq!(balance(&fixture, MISSING).await, 1);
    assert_eq!(parked(&fixture).await, 0);
}

/// Looks often, and tries again only when a test says so.
fn patient() -> outbox_runtime::inbox::ConsumerOptions {
    let hour = Duration::from_secs(3_600);
    let backoff = outbox_runtime::backoff::Backoff::new(hour * 1_000, hour * 1_000);
    options().retry(RetryPolicy::new().backoff(backoff))
}

async fn what_can_not_be_parked_is_not_acknowledged<DB>(fixture: Fixture<DB>)
where
    DB: TestDatabase + Stores<Account>,
{
    open_accounts(&fixture, &["a"]).await;
    fixture
        .run_sql("ALTER TABLE inbox_parked_attempt RENAME TO hidden")
        .await;
    let (postman, script) = (Postman::new(), Script::default());
    let running = Running::start(consumer(&fixture, &postman, &script, &[CREDIT]));
    let mut answer = postman.deliver(&message(&paid(MISSING, 1), "order-1", 1));
    eventually(|| running.consumer.counts().failed_attempts >= 3).await;
    assert!(answer.try_recv().is_err(), "it was answered");
    assert_eq!(parked(&fixture).await, 0);
    let health = running.consumer.health().get().to_string();
    assert!(
        health.contains("can neither be handled nor parked"),
        "{health}"
    );
    // Others go on.
    acknowledged(&postman, &message(&paid("a", 1), "order-2", 1)).await;
    fixture
        .run_sql("ALTER TABLE hidden RENAME TO inbox_parked_attempt")
        .await;
    assert_eq!(answer.await.unwrap(), Answer::Acknowledged);
    mend(&fixture).await;
    running.wait_for_handled(2).await;
    assert_eq!(balance(&fixture, MISSING).await, 1);
}

async fn a_message_without_a_key_is_dead_and_keeps_its_bytes<DB>(fixture: Fixture<DB>)
where
    DB: TestDatabase + Stores<Account>,
{
    let (postman, script) = (Postman::new(), Script::default());
    let running = Running::start(consumer(&fixture, &postman, &script, &["ledger.keyed"]));
    let mut broken = message(&paid("a", 1), "order-1", 1);
    broken.payload = "{ \"account\" :  'no JSON'".to_owned();
    acknowledged(&postman, &broken).await;
    acknowledged(&postman, &message(&paid("a", 1), "order-1", 2)).await;
    assert_eq!(
        rows(&fixture).await,
        ["ledger.keyed|1|dead|1", "ledger.keyed|2|waiting|0"]
    );
    let kept = fixture
        .texts("SELECT payload FROM inbox_parked WHERE idempotency_key IS NULL")
        .await;
    assert_eq!(kept, [broken.payload]);
    assert_eq!(running.consumer.counts().handled, 0);
}

async fn an_event_that_nobody_took_finds_its_handlers_when_it_is_requeued<DB>(fixture: Fixture<DB>)
where
    DB: TestDatabase + Stores<Account>,
{
    open_accounts(&fixture, &["a"]).await;
    let (postman, script) = (Postman::new(), Script::default());
    let mut unknown = message(&paid("a", 100), "order-1", 1);
    unknown.metadata.event_type = "money.burnt".to_owned();
    let park = || options().on_unhandled(OnUnhandled::Park);
    let first = consumer(&fixture, &postman, &script, &[CREDIT]).with_options(park());
    let running = Running::start(first);
    acknowledged(&postman, &unknown).await;
    acknowledged(&postman, &unknown).await;
    assert_eq!(rows(&fixture).await, ["|1|dead|1"]);
    // Nobody takes it yet: it is dead again.
    requeue(&fixture, "consumer = ''").await;
    eventually(|| running.consumer.counts().dead == 2).await;
    running.stop().await.unwrap();
    // A program that calls the event by its new name.
    fixture
        .run_sql("UPDATE inbox_parked SET event_type = 'money.paid'")
        .await;
    let both = consumer(&fixture, &postman, &script, &[CREDIT, BONUS]).with_options(park());
    let running = Running::start(both);
    requeue(&fixture, "consumer = ''").await;
    running.wait_for_handled(2).await;
    assert_eq!(balance(&fixture, "a").await, 101);
    assert_eq!(parked(&fixture).await, 0);
}

#[cfg(feature = "postgres")]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_message_that_succeeds_costs_no_round_trip_for_parking() {
    let Some(fixture) = outbox_tests::postgres().await else {
        return;
    };
    open_accounts(&fixture, &["a"]).await;
    let trips = outbox_tests::RoundTrips::count(&fixture).await;
    let (postman, script) = (Postman::new(), Script::default());
    let mut states = outbox_runtime::handler::States::default();
    states.insert(script.clone());
    let outbox = Outbox::builder("test", trips.pool.clone())
        .notify(false)
        .build()
        .unwrap();
    let hour = Duration::from_secs(3_600);
    let consumer = outbox_runtime::inbox::Consumer::new(outbox, postman.clone())
        .with_states(states)
        .with_options(options().poll_interval(hour))
        .select_consumers(|name| name == CREDIT);
    let running = Running::start(consumer);
    let count = 100;
    for sequence in 1..=count {
        acknowledged(&postman, &message(&paid("a", 1), "order-1", sequence)).await;
    }
    running.stop().await.unwrap();
    // BEGIN, claim, load, the write with its event, COMMIT; besides, a few to prepare the statements
    // and to look for parked messages at the start. One more for each message would be twice over
    // the limit.
    let trips = trips.take();
    let least = 5 * u64::try_from(count).unwrap();
    assert!((least..least + 50).contains(&trips), "{trips}");
    assert_eq!(balance(&fixture, "a").await, count);
}
