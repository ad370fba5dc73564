use std::collections::BTreeSet;
use std::time::Duration;

use outbox_runtime::dead_letters::{LetterFilter, LetterId, Outcome, Refusal, Selection};
use outbox_runtime::prelude::*;
use outbox_tests::{Fixture, TestDatabase, on_both_databases};
use sqlx::Pool;
use sqlx::postgres::PgPoolOptions;

use crate::stock::{HEADLESS, Parked, count, fill, inbox, note, relay};

on_both_databases!(
    one_of_several_operators_wins_each_letter,
    a_run_that_is_cancelled_anywhere_has_done_whole_letters,
);

/// Lanes of five on both sides.
pub async fn fill_lanes<DB: TestDatabase>(fixture: &Fixture<DB>, lanes: i64) {
    let mut rows = Vec::new();
    for lane in 0..lanes {
        for place in 0..5 {
            let number = lane * 5 + place + 1;
            let state = if place == 0 { "dead" } else { "waiting" };
            rows.push(Parked::relay(number, &format!("a{lane}"), state));
            rows.push(Parked::inbox(number, "c", &format!("a{lane}"), state));
        }
    }
    fill(fixture, &rows).await;
}

/// Each letter is either parked, with its attempts, or discarded, with a note.
pub async fn assert_nothing_is_half_done<DB: TestDatabase>(fixture: &Fixture<DB>, letters: i64) {
    // Each in one look, as the database may still be about to commit what was cancelled here.
    let all = "SELECT (SELECT count(*) FROM outbox_parked) + (SELECT count(*) FROM inbox_parked)
        + (SELECT count(*) FROM outbox_discarded)";
    assert_eq!(fixture.number(all).await, letters);
    let unnoted = "SELECT (SELECT count(*) FROM outbox_discarded) - (SELECT count(*) FROM outbox_operator_note)";
    assert_eq!(fixture.number(unnoted).await, 0);
    assert_eq!(fixture.number(HEADLESS).await, 0);
    let strays = "SELECT count(*) FROM outbox_parked_attempt AS attempt
        WHERE NOT EXISTS (SELECT 1 FROM outbox_parked AS parked WHERE parked.id = attempt.parked_id)";
    assert_eq!(fixture.number(strays).await, 0);
    let unnoted = "SELECT count(*) FROM outbox_discarded AS gone WHERE NOT EXISTS (
        SELECT 1 FROM outbox_operator_note AS note
        WHERE note.side = gone.side AND note.letter_id = gone.letter_id)";
    assert_eq!(fixture.number(unnoted).await, 0);
}

/// Also where the database gives every transaction a snapshot that is older than the locks.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_of_several_operators_wins_each_letter_in_stricter_isolation() {
    for level in ["repeatable read", "serializable"] {
        let Some(fixture) = outbox_tests::postgres().await else {
            return;
        };
        let set = "DO $$ BEGIN EXECUTE format(\
             'ALTER DATABASE %I SET default_transaction_isolation = %L', current_database(), 'LEVEL'); END $$";
        fixture.run_sql(&set.replace("LEVEL", level)).await;
        let pool = PgPoolOptions::new().max_connections(20);
        let pool = pool.connect(&fixture.url).await.unwrap();
        operators_race(&fixture, &pool).await;
    }
}

async fn one_of_several_operators_wins_each_letter<DB: TestDatabase>(fixture: Fixture<DB>) {
    operators_race(&fixture, &fixture.pool).await;
}

async fn operators_race<DB: TestDatabase>(fixture: &Fixture<DB>, pool: &Pool<DB>) {
    fill_lanes(fixture, 20).await;
    let ids: Vec<LetterId> = (1..=100).map(relay).chain((1..=100).map(inbox)).collect();
    let mut operators = tokio::task::JoinSet::new();
    for operator in 0..4 {
        // Another process each.
        let outbox = Outbox::new("cli", pool.clone());
        let ids: Selection = ids.iter().copied().collect();
        let letters = outbox.dead_letters();
        let mut run = letters.discard(ids, note()).chunk_size(3 + operator);
        operators.spawn(async move {
            let mut outcomes: Vec<Outcome> = Vec::new();
            while let Some(chunk) = run.next_chunk().await.unwrap() {
                outcomes.extend(chunk.outcomes);
            }
            outcomes
        });
    }
    let mut won = BTreeSet::new();
    let mut busy = BTreeSet::new();
    while let Some(outcomes) = operators.join_next().await {
        let outcomes = outcomes.unwrap();
        assert_eq!(outcomes.len(), 200);
        for outcome in outcomes {
            match outcome.refusal {
                None => assert!(won.insert(outcome.id), "{} was won twice", outcome.id),
                Some(Refusal::InWork) => drop(busy.insert(outcome.id)),
                Some(Refusal::AlreadyDiscarded) => {}
                Some(other) => panic!("{}: {other}", outcome.id),
            }
        }
    }
    assert_eq!(
        won.len(),
        200,
        "who found a letter busy left it to the winner"
    );
    assert_nothing_is_half_done(fixture, 200).await;
    assert_eq!(count(fixture, "outbox_discarded").await, 200);
}

async fn a_run_that_is_cancelled_anywhere_has_done_whole_letters<DB: TestDatabase>(
    fixture: Fixture<DB>,
) {
    fill_lanes(&fixture, 40).await;
    let letters = fixture.outbox.dead_letters();
    let mut cancelled = 0;
    let mut dice = fastrand::Rng::new();
    loop {
        let run = letters
            .discard(LetterFilter::new().parked(), note())
            .chunk_size(5)
            .finish();
        let patience = Duration::from_micros(dice.u64(500..30_000));
        match tokio::time::timeout(patience, run).await {
            Ok(done) => {
                done.unwrap();
                break;
            }
            Err(_) => cancelled += 1,
        }
        assert_nothing_is_half_done(&fixture, 400).await;
    }
    assert_eq!(count(&fixture, "outbox_discarded").await, 400);
    assert_nothing_is_half_done(&fixture, 400).await;
    println!("cancelled {cancelled} times");
    // A run whose one chunk is dropped midway goes on with the same chunk.
    fill(&fixture, &[Parked::relay(900, "z", "dead")]).await;
    let mut run = letters.discard(relay(900), note());
    let _ = tokio::time::timeout(Duration::ZERO, run.next_chunk()).await;
    while run.next_chunk().await.unwrap().is_some() {}
    assert_eq!(count(&fixture, "outbox_discarded").await, 401);
}
