use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use outbox_runtime::MessageId;
use outbox_runtime::backoff::Backoff;
use outbox_runtime::broker::PublishError;
use outbox_runtime::dead_letters::{LetterFilter, LetterState, Selection};
use outbox_runtime::prelude::*;
use outbox_runtime::retry::RetryPolicy;
use outbox_tests::{
    Fixture, RecordingPublisher, RunningRelay, TestDatabase, insert_events, on_both_databases,
    quick,
};

use crate::stock::{HEADLESS, deadlocks, note};

on_both_databases!(
    requeued_and_discarded_heads_leave_the_order_to_running_relays,
    a_message_that_is_being_published_can_be_discarded,
    a_message_that_is_being_published_can_be_requeued,
    a_relay_of_the_same_process_is_woken,
    operators_at_random_beside_relays_that_crash_lose_and_revive_nothing,
);

const PARKED: &str = "SELECT count(*) FROM outbox_parked";
const DEAD: &str = "SELECT count(*) FROM outbox_parked WHERE state = 'dead'";

async fn eventually<DB: TestDatabase>(fixture: &Fixture<DB>, sql: &str, expected: i64) {
    let reached = async {
        while fixture.number(sql).await != expected {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    let in_time = tokio::time::timeout(Duration::from_secs(60), reached).await;
    assert!(in_time.is_ok(), "{sql} is not {expected}");
}

async fn requeued_and_discarded_heads_leave_the_order_to_running_relays<DB: TestDatabase>(
    fixture: Fixture<DB>,
) {
    const AGGREGATES: i64 = 20;
    const EVENTS: i64 = 30;
    let publisher = RecordingPublisher::new();
    publisher.judge(|message| match &message.metadata.aggregate {
        Some(aggregate) if aggregate.sequence == 5 => Err(PublishError::permanent("refused")),
        _ => Ok(()),
    });
    // Two instances, and operators of another process.
    let other = Outbox::new("test", fixture.pool.clone());
    let relays = [
        RunningRelay::start(&fixture.outbox, &publisher),
        RunningRelay::start(&other, &publisher),
    ];
    let letters = Outbox::new("cli", fixture.pool.clone()).dead_letters();
    for aggregate in 0..AGGREGATES {
        let insert = insert_events(&format!("a{aggregate}"), 1..=EVENTS / 2);
        fixture.run_sql(&insert).await;
    }
    eventually(&fixture, DEAD, AGGREGATES).await;
    publisher.accept();
    // More comes while operators are at work.
    let (mut discarded, mut done) = (0, 0);
    for aggregate in 0..AGGREGATES {
        let id = format!("a{aggregate}");
        let insert = insert_events(&id, EVENTS / 2 + 1..=EVENTS);
        fixture.run_sql(&insert).await;
        let filter = LetterFilter::new().aggregate_id(&*id);
        if aggregate % 2 == 0 {
            done += letters.requeue(filter, note()).finish().await.unwrap().done;
        } else {
            // The row may not be under the position yet, and is then refused.
            let totals = loop {
                let run = letters.discard(filter.clone(), note());
                let totals = run.finish().await.unwrap();
                if totals.refused == 0 {
                    break totals;
                }
                tokio::time::sleep(Duration::from_millis(5)).await;
            };
            discarded += totals.done;
        }
    }
    assert_eq!((done, discarded), (10, 10));
    let all = usize::try_from(AGGREGATES * EVENTS).unwrap() - 10;
    publisher.wait_for(all).await;
    eventually(&fixture, PARKED, 0).await;
    eventually(
        &fixture,
        "SELECT min(position) FROM outbox_shard",
        AGGREGATES * EVENTS,
    )
    .await;
    for relay in relays {
        relay.stop().await;
    }
    let whole: Vec<i64> = (1..=EVENTS).collect();
    let without: Vec<i64> = whole.iter().copied().filter(|&n| n != 5).collect();
    for (aggregate, sequences) in publisher.sequences() {
        let number: i64 = aggregate[1..].parse().unwrap();
        let expected = if number % 2 == 0 { &whole } else { &without };
        assert_eq!(&sequences, expected, "{aggregate}");
    }
    assert_eq!(publisher.taken().len(), all, "nothing was published twice");
    assert_eq!(publisher.overlaps(), 0);
}

/// A publisher that refuses an aggregate's first message, each call taking a while, and a relay
/// that offers it again at once: at nearly every moment it is being published.
async fn always_publishing<DB: TestDatabase>(
    fixture: &Fixture<DB>,
) -> (RecordingPublisher, RunningRelay) {
    let publisher = RecordingPublisher::with_delay(Duration::from_millis(150));
    publisher.judge(|message| match &message.metadata.aggregate {
        Some(aggregate) if aggregate.sequence == 1 => Err(PublishError::permanent("refused")),
        _ => Ok(()),
    });
    fixture.run_sql(&insert_events("bad", 1..=3)).await;
    let at_once = Backoff::new(Duration::from_millis(1), Duration::from_millis(1));
    let retry = RetryPolicy::new()
        .permanent_attempts(1_000_000)
        .backoff(at_once);
    let relay = RunningRelay::start_with(&fixture.outbox, &publisher, quick().retry(retry));
    let failing = "SELECT count(*) FROM outbox_parked WHERE state = 'failing' AND attempts >= 2";
    eventually(fixture, failing, 1).await;
    eventually(fixture, "SELECT min(position) FROM outbox_shard", 3).await;
    let calls = publisher.calls();
    while publisher.calls() == calls {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    (publisher, relay)
}

async fn a_message_that_is_being_published_can_be_discarded<DB: TestDatabase>(
    fixture: Fixture<DB>,
) {
    let (publisher, relay) = always_publishing(&fixture).await;
    let letters = fixture.outbox.dead_letters();
    let failing = LetterFilter::new().states([LetterState::Failing]);
    // The call that is under way is refused: what it says comes too late.
    let totals = letters.discard(failing, note()).finish().await.unwrap();
    assert_eq!(totals.done, 1);
    publisher.wait_for(2).await;
    eventually(&fixture, PARKED, 0).await;
    fixture.run_sql(&insert_events("bad", [4])).await;
    publisher.wait_for(3).await;
    relay.stop().await;
    assert_eq!(publisher.sequences()["bad"], [2, 3, 4]);
    assert_eq!(publisher.taken().len(), 3);
    let kept = "SELECT count(*) FROM outbox_discarded WHERE sequence = 1 AND attempts >= 2";
    assert_eq!(fixture.number(kept).await, 1);
}

async fn a_message_that_is_being_published_can_be_requeued<DB: TestDatabase>(fixture: Fixture<DB>) {
    let (publisher, relay) = always_publishing(&fixture).await;
    let letters = fixture.outbox.dead_letters();
    let failing = LetterFilter::new().states([LetterState::Failing]);
    for _ in 0..20 {
        let page = letters.list(&failing, None, 10).await.unwrap();
        let ids: Selection = page.letters.iter().map(|letter| letter.id).collect();
        letters.requeue(ids, note()).finish().await.unwrap();
        tokio::time::sleep(Duration::from_millis(15)).await;
    }
    assert_eq!(publisher.sequences().len(), 0, "nobody came before it");
    publisher.accept();
    publisher.wait_for(3).await;
    eventually(&fixture, PARKED, 0).await;
    relay.stop().await;
    assert_eq!(publisher.sequences()["bad"], [1, 2, 3]);
    assert_eq!(publisher.taken().len(), 3, "and once");
}

async fn a_relay_of_the_same_process_is_woken<DB: TestDatabase>(fixture: Fixture<DB>) {
    let publisher = RecordingPublisher::new();
    publisher.judge(|_| Err(PublishError::permanent("refused")));
    fixture.run_sql(&insert_events("bad", 1..=3)).await;
    // By itself it would look again in an hour.
    let hour = Duration::from_secs(3_600);
    let options = quick().poll_interval(Duration::from_millis(5), hour);
    let relay = RunningRelay::start_with(&fixture.outbox, &publisher, options);
    eventually(&fixture, DEAD, 1).await;
    eventually(&fixture, PARKED, 3).await;
    publisher.accept();
    let letters = fixture.outbox.dead_letters();
    let totals = letters
        .requeue(LetterFilter::new(), note())
        .finish()
        .await
        .unwrap();
    assert_eq!(totals.done, 1);
    publisher.wait_for(3).await;
    relay.stop().await;
    publisher.assert_complete(1, 3);
}

async fn operators_at_random_beside_relays_that_crash_lose_and_revive_nothing<DB: TestDatabase>(
    fixture: Fixture<DB>,
) {
    const AGGREGATES: usize = 12;
    const ROUNDS: i64 = 15;
    const EACH: i64 = 4;
    /// So many have to be discarded for the test to show something.
    const ENOUGH: usize = 5;
    const MOST_ROUNDS: i64 = 300;
    let publisher = RecordingPublisher::new();
    let discarded: Arc<Mutex<HashSet<MessageId>>> = Arc::default();
    let (is_over, revived) = (
        Arc::new(AtomicBool::new(false)),
        Arc::new(AtomicUsize::new(0)),
    );
    publisher.judge({
        let (discarded, is_over) = (Arc::clone(&discarded), Arc::clone(&is_over));
        let revived = Arc::clone(&revived);
        move |message| {
            if discarded
                .lock()
                .unwrap()
                .contains(&message.metadata.message_id)
            {
                revived.fetch_add(1, Ordering::SeqCst);
            }
            if !is_over.load(Ordering::SeqCst) && fastrand::u8(0..8) == 0 {
                return Err(PublishError::permanent("not today"));
            }
            Ok(())
        }
    });
    let mut operators = tokio::task::JoinSet::new();
    for n in 0..3 {
        let letters = Outbox::new("cli", fixture.pool.clone()).dead_letters();
        let (discarded, is_over) = (Arc::clone(&discarded), Arc::clone(&is_over));
        operators.spawn(async move {
            while !is_over.load(Ordering::SeqCst) {
                let filter = LetterFilter::new();
                if n == 0 {
                    // By filter, as one that another operator has requeued by now may be at the
                    // broker.
                    for letter in letters.list(&filter, None, 3).await.unwrap().letters {
                        let only = filter.clone().message_id(letter.message_id);
                        let run = letters.discard(only, note());
                        if run.finish().await.unwrap().done == 1 {
                            discarded.lock().unwrap().insert(letter.message_id);
                        }
                    }
                } else {
                    let run = letters.requeue(filter, note()).chunk_size(3);
                    run.finish().await.unwrap();
                }
                tokio::time::sleep(Duration::from_millis(fastrand::u64(1..40))).await;
            }
        });
    }
    let other = Outbox::new("test", fixture.pool.clone());
    let mut relays = Vec::new();
    let mut rounds = 0;
    while rounds < ROUNDS || (discarded.lock().unwrap().len() < ENOUGH && rounds < MOST_ROUNDS) {
        for aggregate in 0..AGGREGATES {
            let first = rounds * EACH + 1;
            let insert = insert_events(&format!("a{aggregate}"), first..first + EACH);
            fixture.run_sql(&insert).await;
        }
        if rounds % 5 == 0 {
            for relay in relays.drain(..) {
                RunningRelay::crash(relay).await;
            }
            relays.push(RunningRelay::start(&fixture.outbox, &publisher));
            relays.push(RunningRelay::start(&other, &publisher));
        }
        rounds += 1;
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    is_over.store(true, Ordering::SeqCst);
    while let Some(operator) = operators.join_next().await {
        operator.unwrap();
    }
    let letters = fixture.outbox.dead_letters();
    let all = i64::try_from(AGGREGATES).unwrap() * rounds * EACH;
    let settled = async {
        while fixture.number(PARKED).await > 0
            || fixture
                .number("SELECT min(position) FROM outbox_shard")
                .await
                < all
        {
            letters
                .requeue(LetterFilter::new(), note())
                .finish()
                .await
                .unwrap();
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(90), settled)
        .await
        .expect("all is settled");
    for relay in relays {
        relay.stop().await;
    }
    assert_eq!(
        revived.load(Ordering::SeqCst),
        0,
        "what is discarded is offered no more"
    );
    assert_eq!(fixture.number(HEADLESS).await, 0);
    assert_eq!(deadlocks(&fixture).await, 0);
    let discarded = discarded.lock().unwrap().len();
    assert!(discarded >= ENOUGH, "{discarded} in {rounds} rounds");
    let kept = fixture
        .number("SELECT count(*) FROM outbox_discarded")
        .await;
    assert_eq!(usize::try_from(kept).unwrap(), discarded);
    for (aggregate, sequences) in publisher.sequences() {
        assert!(sequences.is_sorted(), "{aggregate}: {sequences:?}");
    }
    for aggregate in 0..AGGREGATES {
        // A crash may have kept a relay from writing down that a message was out.
        let gone = format!(
            "SELECT CAST(sequence AS text) FROM outbox_discarded WHERE aggregate_id = 'a{aggregate}'"
        );
        let gone = fixture.texts(&gone).await;
        let gone = gone.iter().map(|sequence| sequence.parse::<i64>().unwrap());
        let mut found: Vec<i64> = publisher.sequences()[&format!("a{aggregate}")].clone();
        found.extend(gone);
        found.sort_unstable();
        found.dedup();
        assert_eq!(
            found,
            (1..=rounds * EACH).collect::<Vec<_>>(),
            "a{aggregate}"
        );
    }
    println!("{discarded} of {all} were discarded");
}
