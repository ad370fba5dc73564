use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use outbox_runtime::Error;
use outbox_runtime::dead_letters::{Act, LetterFilter, LetterState, Refusal, Selection};
use outbox_runtime::handler::States;
use outbox_runtime::inbox::Consumer;
use outbox_runtime::prelude::*;
use outbox_runtime::retry::RetryPolicy;
use outbox_tests::{Answer, Fixture, Postman, TestDatabase, message, on_both_databases};
use tokio::sync::Semaphore;

use crate::consumer_support::{
    Account, Act as Step, BONUS, CREDIT, LedgerError, Running, Script, balance, consumer,
    eventually, inbox, open_accounts, options, paid, parked,
};
use crate::stock::{self, Parked, count, deadlocks, fill, note};

on_both_databases!(
    requeued_and_discarded_heads_leave_the_order_to_running_consumers,
    an_old_version_is_upcast_when_it_is_tried_again,
    messages_of_a_handler_that_was_removed_are_seen_and_wait_for_it,
    a_consumer_of_the_same_process_is_woken,
    operators_at_random_beside_consumers_lose_and_repeat_nothing,
);

fn dead_at_once() -> outbox_runtime::inbox::ConsumerOptions {
    options().retry(RetryPolicy::new().max_attempts(1))
}

async fn acknowledged(postman: &Postman, message: &outbox_runtime::Message) {
    let answer = postman.deliver(message).await.unwrap();
    assert_eq!(answer, Answer::Acknowledged);
}

async fn requeued_and_discarded_heads_leave_the_order_to_running_consumers<DB>(fixture: Fixture<DB>)
where
    DB: TestDatabase + Stores<Account>,
{
    let accounts: Vec<String> = (0..10).map(|n| format!("a{n}")).collect();
    let ids: Vec<&str> = accounts.iter().map(String::as_str).collect();
    open_accounts(&fixture, &ids).await;
    let (postman, script) = (Postman::new(), Script::default());
    let start = || {
        let consumer = consumer(&fixture, &postman, &script, &[CREDIT]);
        Running::start(consumer.with_options(dead_at_once()))
    };
    let instances = [start(), start()];
    for sequence in 1..=10 {
        for account in &ids {
            let account_id = if sequence == 4 { "missing" } else { account };
            let message = message(&paid(account_id, 1), account, sequence);
            acknowledged(&postman, &message).await;
        }
    }
    let handled = || {
        instances
            .iter()
            .map(|one| one.consumer.counts().handled)
            .sum::<u64>()
    };
    eventually(|| handled() == 30).await;
    assert_eq!(parked(&fixture).await, 70);
    let letters = fixture.outbox.dead_letters();
    let dead = letters.list(&LetterFilter::new(), None, 100).await.unwrap();
    assert_eq!(dead.letters.len(), 10);
    assert!(dead.letters.iter().all(|letter| letter.behind == 6));
    let (given_up, tried): (Vec<_>, Vec<_>) = dead
        .letters
        .iter()
        .partition(|letter| letter.aggregate_id.as_deref() < Some("a5"));
    let ids_of = |letters: &[&outbox_runtime::dead_letters::Letter]| -> Selection {
        letters.iter().map(|letter| letter.id).collect()
    };
    let run = letters.discard(ids_of(&given_up), note());
    assert_eq!(run.finish().await.unwrap().done, 5);
    fixture
        .run_sql("INSERT INTO accounts VALUES ('missing', 0, 1)")
        .await;
    let run = letters.requeue(ids_of(&tried), note());
    assert_eq!(run.finish().await.unwrap().done, 5);
    eventually(|| handled() >= 95).await;
    for instance in instances {
        instance.stop().await.unwrap();
    }
    assert_eq!(parked(&fixture).await, 0);
    assert_eq!(inbox(&fixture).await, 95, "one effect each");
    assert_eq!(balance(&fixture, "missing").await, 5);
    for account in &ids {
        let seen = script
            .attempts()
            .into_iter()
            .filter(|one| one.aggregate_id == *account);
        let mut seen: Vec<_> = seen.map(|one| one.sequence).collect();
        // Those that change one account may conflict, and are repeated in place.
        seen.dedup();
        let expected: Vec<i64> = (1..=10).filter(|&n| n != 4 || *account >= "a5").collect();
        assert_eq!(seen, expected, "{account}");
    }
}

/// As it was told at first.
#[domain_event(version = 1, name = "parcel.sent")]
pub struct ParcelSentV1 {
    pub parcel: String,
}

/// As it is told now.
#[domain_event(version = 2, name = "parcel.sent", upcast_from = ParcelSentV1)]
pub struct ParcelSent {
    pub parcel: String,
    pub carrier: String,
}

impl From<ParcelSentV1> for ParcelSent {
    fn from(old: ParcelSentV1) -> Self {
        Self {
            parcel: old.parcel,
            carrier: "post".to_owned(),
        }
    }
}

/// What was handled.
#[derive(Clone, Default)]
pub struct Seen(Arc<Mutex<Vec<String>>>);

#[idempotent_handler(consumer = "parcels.trace", key = "{message_id}")]
async fn trace<DB: Backend>(
    event: Envelope<ParcelSent>,
    _: &mut UnitOfWork<'_, DB>,
    State(seen): State<Seen>,
) -> Result<(), Error> {
    let version = event.metadata.schema_version;
    let line = format!("v{version} {} by {}", event.parcel, event.carrier);
    seen.0.lock().unwrap().push(line);
    Ok(())
}

async fn an_old_version_is_upcast_when_it_is_tried_again<DB: TestDatabase>(fixture: Fixture<DB>) {
    // Left by a program that knew version 1 alone.
    let mut row = Parked::inbox(1, "parcels.trace", "p", "dead");
    row.event_type = "parcel.sent";
    fill(&fixture, &[row]).await;
    let payload = "UPDATE inbox_parked SET payload = '{\"parcel\":\"p7\"}'";
    fixture.run_sql(payload).await;
    let seen = Seen::default();
    let mut states = States::default();
    states.insert(seen.clone());
    let consumer = Consumer::new(fixture.outbox.clone(), Postman::new())
        .with_states(states)
        .with_options(options())
        .select_consumers(|name| name == "parcels.trace");
    let running = Running::start(consumer);
    let letters = fixture.outbox.dead_letters();
    letters
        .requeue(stock::inbox(1), note())
        .finish()
        .await
        .unwrap();
    running.wait_for_handled(1).await;
    running.stop().await.unwrap();
    assert_eq!(*seen.0.lock().unwrap(), ["v1 p7 by post"]);
    assert_eq!(parked(&fixture).await, 0);
}

async fn messages_of_a_handler_that_was_removed_are_seen_and_wait_for_it<DB>(fixture: Fixture<DB>)
where
    DB: TestDatabase + Stores<Account>,
{
    open_accounts(&fixture, &["a"]).await;
    let hour = Duration::from_secs(3_600);
    let mut rows = vec![
        Parked::inbox(1, "shop.removed", "x", "dead"),
        Parked::inbox(2, "shop.removed", "x", "waiting"),
        Parked::inbox(3, "shop.idle", "y", "waiting"),
        Parked::inbox(4, "shop.elsewhere", "z", "failing"),
    ];
    rows[2].age = hour;
    fill(&fixture, &rows).await;
    let (postman, script) = (Postman::new(), Script::default());
    let bonus = Running::start(consumer(&fixture, &postman, &script, &[BONUS]));
    let health = bonus.consumer.health();
    let told = health
        .wait_for(|health| health.to_string().contains("shop.removed"))
        .await;
    let told = told.to_string();
    assert!(
        told.contains(
            "consumer shop.removed, of which this program has no handler: 1 dead letter(s)"
        ),
        "{told}"
    );
    assert!(told.contains("shop.idle, of which this program has no handler: 0 dead letter(s) wait for an operator, 1 message(s) are due and nobody tries them"), "{told}");
    assert!(
        !told.contains("shop.elsewhere"),
        "another program may be about to try it: {told}"
    );
    let letters = fixture.outbox.dead_letters();
    let of_removed = LetterFilter::new().consumer("shop.removed").parked();
    assert_eq!(letters.count(&of_removed).await.unwrap(), 2);
    let run = letters.discard(of_removed, note());
    assert_eq!(run.finish().await.unwrap().done, 2);
    let over = health
        .wait_for(|health| !health.to_string().contains("shop.removed"))
        .await;
    assert!(over.to_string().contains("shop.idle"));

    // One whose handler comes back.
    let credit = || {
        let consumer = consumer(&fixture, &postman, &script, &[CREDIT]);
        Running::start(consumer.with_options(dead_at_once()))
    };
    bonus.stop().await.unwrap();
    let first = credit();
    script.set(CREDIT, [Step::Fail(FailureKind::Permanent)]);
    acknowledged(&postman, &message(&paid("a", 1), "order", 1)).await;
    acknowledged(&postman, &message(&paid("a", 1), "order", 2)).await;
    eventually(|| first.consumer.counts().dead == 1).await;
    first.stop().await.unwrap();
    let without = Running::start(consumer(&fixture, &postman, &script, &[BONUS]));
    let of_credit = LetterFilter::new().consumer(CREDIT);
    let run = letters.requeue(of_credit.clone(), note());
    assert_eq!(run.finish().await.unwrap().done, 1);
    without.stop().await.unwrap();
    let waiting = of_credit.states([LetterState::Waiting]);
    assert_eq!(
        letters.count(&waiting).await.unwrap(),
        2,
        "nobody else touched it"
    );
    let back = credit();
    back.wait_for_handled(2).await;
    back.stop().await.unwrap();
    assert_eq!(balance(&fixture, "a").await, 2);
}

async fn a_consumer_of_the_same_process_is_woken<DB>(fixture: Fixture<DB>)
where
    DB: TestDatabase + Stores<Account>,
{
    open_accounts(&fixture, &["a"]).await;
    let (postman, script) = (Postman::new(), Script::default());
    let gate = Arc::new(Semaphore::new(0));
    script.set(
        CREDIT,
        [
            Step::Fail(FailureKind::Permanent),
            Step::WaitFor(Arc::clone(&gate)),
        ],
    );
    // By itself it would look again in an hour.
    let hour = Duration::from_secs(3_600);
    let consumer = consumer(&fixture, &postman, &script, &[CREDIT]);
    let running = Running::start(consumer.with_options(dead_at_once().poll_interval(hour)));
    acknowledged(&postman, &message(&paid("a", 1), "order", 1)).await;
    eventually(|| running.consumer.counts().dead == 1).await;
    let letters = fixture.outbox.dead_letters();
    let id = letters
        .list(&LetterFilter::new(), None, 1)
        .await
        .unwrap()
        .letters[0]
        .id;
    letters.requeue(id, note()).finish().await.unwrap();
    script.wait_for_attempts(2).await;
    // While it is handled, its row is locked. SQLite has one writer: an operator waits there.
    if DB::NAME != "SQLite" {
        for act in [Act::Requeue, Act::Discard] {
            let chunk = letters
                .dry_run(act, id)
                .next_chunk()
                .await
                .unwrap()
                .unwrap();
            assert_eq!(chunk.outcomes[0].refusal, Some(Refusal::InWork));
        }
    }
    gate.add_permits(1);
    running.wait_for_handled(1).await;
    running.stop().await.unwrap();
    let chunk = letters
        .dry_run(Act::Discard, id)
        .next_chunk()
        .await
        .unwrap()
        .unwrap();
    assert_eq!(chunk.outcomes[0].refusal, Some(Refusal::NotFound));
    assert_eq!(balance(&fixture, "a").await, 1);
}

/// What was handled, in order, and whether all goes well from now on.
#[derive(Clone, Default)]
pub struct Rolls {
    handled: Arc<Mutex<Vec<(String, i64)>>>,
    is_over: Arc<AtomicBool>,
}

#[idempotent_handler(consumer = "dice.roll", key = "{message_id}")]
async fn roll<DB: Backend>(
    event: Envelope<ParcelSent>,
    _: &mut UnitOfWork<'_, DB>,
    State(rolls): State<Rolls>,
) -> Result<(), LedgerError> {
    if !rolls.is_over.load(Ordering::SeqCst) && fastrand::u8(0..6) == 0 {
        return Err(LedgerError::Scripted(FailureKind::Permanent));
    }
    let aggregate = event.metadata.aggregate.clone().unwrap();
    let place = (aggregate.aggregate_id, aggregate.sequence);
    rolls.handled.lock().unwrap().push(place);
    Ok(())
}

async fn operators_at_random_beside_consumers_lose_and_repeat_nothing<DB: TestDatabase>(
    fixture: Fixture<DB>,
) {
    const LANES: usize = 8;
    const EACH: usize = 40;
    let (postman, rolls) = (Postman::new(), Rolls::default());
    let start = || {
        let mut states = States::default();
        states.insert(rolls.clone());
        let consumer = Consumer::new(fixture.outbox.clone(), postman.clone())
            .with_states(states)
            .with_options(dead_at_once())
            .select_consumers(|name| name == "dice.roll");
        Running::start(consumer)
    };
    let instances = [start(), start()];
    let mut operators = tokio::task::JoinSet::new();
    for n in 0..3 {
        let letters = Outbox::new("cli", fixture.pool.clone()).dead_letters();
        let is_over = Arc::clone(&rolls.is_over);
        operators.spawn(async move {
            let mut discarded = 0;
            while !is_over.load(Ordering::SeqCst) {
                if n == 0 && fastrand::u8(0..4) == 0 {
                    // Any letter, whatever a consumer is about to do with it.
                    let parked = LetterFilter::new().parked();
                    let page = letters.list(&parked, None, 3).await.unwrap();
                    let ids: Selection = page.letters.iter().map(|letter| letter.id).collect();
                    let run = letters.discard(ids, note());
                    discarded += run.finish().await.unwrap().done;
                } else {
                    let run = letters.requeue(LetterFilter::new(), note()).chunk_size(3);
                    run.finish().await.unwrap();
                }
                tokio::time::sleep(Duration::from_millis(fastrand::u64(1..20))).await;
            }
            discarded
        });
    }
    for sequence in 1..=EACH {
        for lane in 0..LANES {
            let sent = ParcelSent {
                parcel: "p".to_owned(),
                carrier: "c".to_owned(),
            };
            let sequence = i64::try_from(sequence).unwrap();
            acknowledged(&postman, &message(&sent, &format!("l{lane}"), sequence)).await;
        }
    }
    rolls.is_over.store(true, Ordering::SeqCst);
    let mut discarded = 0;
    while let Some(operator) = operators.join_next().await {
        discarded += operator.unwrap();
    }
    let letters = fixture.outbox.dead_letters();
    let empty = async {
        while parked(&fixture).await > 0 {
            letters
                .requeue(LetterFilter::new(), note())
                .finish()
                .await
                .unwrap();
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(90), empty)
        .await
        .expect("all is handled");
    for instance in instances {
        instance.stop().await.unwrap();
    }
    let all = i64::try_from(LANES * EACH).unwrap();
    let kept = count(&fixture, "outbox_discarded").await;
    assert_eq!(kept.unsigned_abs(), discarded);
    assert_eq!(
        inbox(&fixture).await + kept,
        all,
        "handled or given up, and never both"
    );
    assert_eq!(deadlocks(&fixture).await, 0);
    for lane in 0..LANES {
        let handled = rolls.handled.lock().unwrap();
        let of_lane = handled.iter().filter(|(id, _)| *id == format!("l{lane}"));
        let sequences: Vec<i64> = of_lane.map(|(_, sequence)| *sequence).collect();
        assert!(sequences.is_sorted(), "l{lane}: {sequences:?}");
    }
    println!("{discarded} of {all} were discarded");
}
