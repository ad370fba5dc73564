use std::collections::{BTreeMap, BTreeSet};

use outbox_runtime::dead_letters::{
    Act, LetterFilter, LetterId, LetterState, Outcome, Refusal, Run, Selection, Side, Totals,
};
use outbox_tests::{Fixture, TestDatabase, on_both_databases};

use crate::stock::{HEADLESS, Parked, count, fill, inbox, note, relay, snapshot};

on_both_databases!(
    a_dry_run_says_what_the_act_does,
    each_letter_that_is_refused_says_why,
    a_letter_that_is_requeued_starts_anew,
    a_discarded_head_hands_its_lane_on,
);

async fn outcomes<DB: TestDatabase>(mut run: Run<DB>) -> (Vec<Outcome>, Totals) {
    let (mut outcomes, mut totals) = (Vec::new(), Totals::default());
    while let Some(chunk) = run.next_chunk().await.unwrap() {
        outcomes.extend(chunk.outcomes);
        totals = chunk.so_far;
    }
    let done = outcomes.iter().filter(|one| one.is_done()).count() as u64;
    assert_eq!(totals.done, done);
    assert_eq!(totals.done + totals.refused, outcomes.len() as u64);
    (outcomes, totals)
}

/// Lanes as relays and consumers leave them, at random.
fn random_rows(dice: &mut fastrand::Rng) -> Vec<Parked> {
    let mut rows = Vec::new();
    for lane in 0..dice.usize(1..8) {
        let aggregate = format!("r{lane}");
        for place in 0..dice.usize(1..6) {
            let number = rows.len() as i64 + 1;
            let head = *dice.choice(&["dead", "failing"]).unwrap();
            let state = if place == 0 { head } else { "waiting" };
            rows.push(Parked::relay(number, &aggregate, state));
        }
    }
    for lane in 0..dice.usize(1..8) {
        let consumer = *dice.choice(&["", "c1", "c2"]).unwrap();
        let aggregate = format!("i{lane}");
        for place in 0..dice.usize(1..6) {
            let number = rows.len() as i64 + 1;
            let any = *dice.choice(&["dead", "failing", "waiting"]).unwrap();
            let state = if place == 0 || any == "dead" {
                any
            } else {
                "waiting"
            };
            let mut row = Parked::inbox(number, consumer, &aggregate, state);
            row.holds = state != "dead" || dice.bool();
            rows.push(row);
        }
    }
    for row in &mut rows {
        row.cause = (*dice.choice(&["timeout", "refused"]).unwrap()).to_owned();
        row.event_type = dice.choice(&["Happened", "Other"]).unwrap();
    }
    rows
}

fn random_selection(dice: &mut fastrand::Rng, rows: &[Parked]) -> Selection {
    if dice.bool() {
        let ids = rows.iter().map(|row| row.id).filter(|_| dice.bool());
        let mut ids: Vec<LetterId> = ids.collect();
        ids.extend([relay(900), inbox(900)]);
        return ids.into_iter().collect();
    }
    let mut filter = LetterFilter::new();
    if dice.bool() {
        filter = filter.parked();
    }
    filter = match dice.u8(0..6) {
        0 => filter.side(Side::Relay),
        1 => filter.side(Side::Inbox),
        2 => filter.cause("time"),
        3 => filter.event_type("Other"),
        4 => filter.states([LetterState::Failing]),
        _ => filter,
    };
    filter.into()
}

async fn a_dry_run_says_what_the_act_does<DB: TestDatabase>(fixture: Fixture<DB>) {
    let seed = std::env::var("OUTBOX_TEST_SEED")
        .ok()
        .and_then(|seed| seed.parse().ok());
    let seed = seed.unwrap_or_else(|| fastrand::u64(..));
    println!("OUTBOX_TEST_SEED={seed}");
    let mut dice = fastrand::Rng::with_seed(seed);
    let letters = fixture.outbox.dead_letters();
    for round in 0..40 {
        fixture
            .run_sql(
                "DELETE FROM outbox_parked; DELETE FROM inbox_parked; DELETE FROM outbox_discarded; \
                 DELETE FROM outbox_operator_note; DELETE FROM outbox_parked_attempt",
            )
            .await;
        let rows = random_rows(&mut dice);
        fill(&fixture, &rows).await;
        // Some shards lag behind.
        let lagging = format!(
            "UPDATE outbox_shard SET position = 2 WHERE shard % 3 = {}",
            dice.u8(0..4)
        );
        fixture.run_sql(&lagging).await;
        let earlier = rows.iter().filter(|_| dice.u8(0..8) == 0).map(|row| row.id);
        let earlier: Selection = earlier.collect();
        letters.discard(earlier, note()).finish().await.unwrap();

        let selection = random_selection(&mut dice, &rows);
        let act = *dice.choice(&[Act::Requeue, Act::Discard]).unwrap();
        let chunk = dice.u32(1..10);
        let what = format!("seed {seed}, round {round}: {act:?} {selection:?} by {chunk}");
        let before = snapshot(&fixture).await;
        let notes = count(&fixture, "outbox_operator_note").await;
        let plan = letters.dry_run(act, selection.clone()).chunk_size(chunk);
        let (planned, sums) = outcomes(plan).await;
        assert_eq!(
            snapshot(&fixture).await,
            before,
            "{what}: a dry run changed something"
        );
        let run = match act {
            Act::Requeue => letters.requeue(selection, note()),
            Act::Discard => letters.discard(selection, note()),
        };
        let (done, done_sums) = outcomes(run.chunk_size(chunk)).await;
        assert_eq!(done, planned, "{what}");
        assert_eq!(done_sums, sums, "{what}");
        let new_notes = count(&fixture, "outbox_operator_note").await - notes;
        assert_eq!(new_notes.unsigned_abs(), sums.done, "{what}");
        assert_eq!(fixture.number(HEADLESS).await, 0, "{what}");
        check_effect(&fixture, act, &planned, &before, &what).await;
    }
}

/// The acted on letters changed as they should, and nothing else did but new heads.
async fn check_effect<DB: TestDatabase>(
    fixture: &Fixture<DB>,
    act: Act,
    outcomes: &[Outcome],
    before: &[String],
    what: &str,
) {
    let done: BTreeSet<String> = outcomes
        .iter()
        .filter(|one| one.is_done())
        .map(|one| one.id.to_string().replace(':', " "))
        .collect();
    let after = snapshot(fixture).await;
    let parked = |rows: &[String]| -> BTreeMap<String, String> {
        let rows = rows.iter().filter(|row| {
            let is_parked = row.starts_with("relay ") || row.starts_with("inbox ");
            is_parked && !row.contains("attempt")
        });
        rows.map(|row| {
            let words: Vec<_> = row.split(' ').collect();
            (words[..2].join(" "), words[2..].join(" "))
        })
        .collect()
    };
    let (was, is) = (parked(before), parked(&after));
    for (id, row) in &was {
        match (done.contains(id), act, is.get(id)) {
            (true, Act::Discard, None) => {
                assert!(after.contains(&format!("discarded {id}")), "{what}: {id}");
                let attempts = after
                    .iter()
                    .filter(|row| row.starts_with(&format!("{} ", id.replace(' ', " attempt "))));
                assert_eq!(attempts.count(), 0, "{what}: {id}");
            }
            (true, Act::Requeue, Some(now)) => {
                assert!(now.starts_with("failing 0 "), "{what}: {id} {now}");
            }
            (false, _, Some(now)) if now == row => {}
            (false, Act::Discard, Some(now)) => {
                let is_new_head = row.starts_with("waiting") && now.starts_with("failing 0 ");
                assert!(
                    id.starts_with("relay") && is_new_head,
                    "{what}: {id} {row}, {now}"
                );
            }
            (_, _, now) => panic!("{what}: {id} was {row} and is {now:?}"),
        }
    }
    assert!(is.keys().all(|id| was.contains_key(id)), "{what}");
}

async fn each_letter_that_is_refused_says_why<DB: TestDatabase>(fixture: Fixture<DB>) {
    let rows = [
        Parked::relay(1, "a", "dead"),
        Parked::relay(2, "a", "waiting"),
        Parked::relay(3, "b", "dead"),
        Parked::inbox(1, "c", "a", "dead"),
        Parked::inbox(2, "c", "a", "waiting"),
        Parked::inbox(3, "c", "b", "waiting"),
    ];
    fill(&fixture, &rows).await;
    let letters = fixture.outbox.dead_letters();
    letters.discard(relay(3), note()).finish().await.unwrap();
    let refusals = async |act, id: LetterId| {
        let (planned, _) = outcomes(letters.dry_run(act, id)).await;
        assert_eq!(planned.len(), 1);
        planned[0].refusal
    };
    assert_eq!(refusals(Act::Requeue, relay(1)).await, None);
    let behind = Some(Refusal::Behind { head: relay(1) });
    assert_eq!(refusals(Act::Requeue, relay(2)).await, behind);
    let discarded = Some(Refusal::AlreadyDiscarded);
    assert_eq!(refusals(Act::Requeue, relay(3)).await, discarded);
    assert_eq!(refusals(Act::Discard, relay(3)).await, discarded);
    for act in [Act::Requeue, Act::Discard] {
        assert_eq!(refusals(act, relay(4)).await, Some(Refusal::NotFound));
        assert_eq!(refusals(act, inbox(4)).await, Some(Refusal::NotFound));
    }
    let behind = Some(Refusal::Behind { head: inbox(1) });
    assert_eq!(refusals(Act::Requeue, inbox(2)).await, behind);
    assert_eq!(refusals(Act::Discard, inbox(2)).await, None);
    assert_eq!(
        refusals(Act::Requeue, inbox(3)).await,
        Some(Refusal::NotFailed)
    );
    letters.requeue(relay(1), note()).finish().await.unwrap();
    assert_eq!(
        refusals(Act::Requeue, relay(1)).await,
        Some(Refusal::NotFailed)
    );
    // As long as a relay could read it again, it can't be given up.
    fixture
        .run_sql("UPDATE outbox_shard SET position = 1")
        .await;
    assert_eq!(refusals(Act::Discard, relay(1)).await, None);
    assert_eq!(
        refusals(Act::Discard, relay(2)).await,
        Some(Refusal::NotSettled)
    );
    let (planned, sums) =
        outcomes(letters.dry_run(Act::Discard, LetterFilter::new().parked())).await;
    assert_eq!((sums.done, sums.refused, sums.chunks), (4, 1, 2));
    let dead = planned[2].letter.as_ref().unwrap();
    assert_eq!((dead.behind, &*dead.first_behind), (1, &[inbox(2)][..]));
    let json = serde_json::to_value(&planned[1]).unwrap();
    assert_eq!(json["refusal"]["reason"], "not_settled", "{json}");
}

async fn a_letter_that_is_requeued_starts_anew<DB: TestDatabase>(fixture: Fixture<DB>) {
    let mut rows = [
        Parked::relay(1, "a", "dead"),
        Parked::inbox(1, "c", "a", "dead"),
        Parked::inbox(2, "c", "b", "failing"),
    ];
    for row in &mut rows {
        row.attempts = 7;
    }
    fill(&fixture, &rows).await;
    let letters = fixture.outbox.dead_letters();
    let all = LetterFilter::new().parked();
    let totals = letters.requeue(all.clone(), note()).finish().await.unwrap();
    assert_eq!((totals.done, totals.refused), (3, 0));
    for letter in letters.list(&all, None, 10).await.unwrap().letters {
        assert_eq!(letter.state, LetterState::Waiting);
        assert_eq!((letter.attempts, letter.failing_since), (0, None));
        assert!(letter.next_attempt_at.is_some());
        let shown = letters.show(letter.id).await.unwrap().unwrap();
        assert_eq!(shown.failed_attempts.len(), 7, "what happened stays known");
        assert_eq!(shown.notes.len(), 1);
        assert_eq!(shown.notes[0].reason, "the test says so");
    }
    let again = letters.requeue(all, note()).finish().await.unwrap();
    assert_eq!((again.done, again.refused), (0, 3));
}

async fn a_discarded_head_hands_its_lane_on<DB: TestDatabase>(fixture: Fixture<DB>) {
    let mut rows = vec![Parked::relay(1, "a", "dead")];
    rows.extend((2..=300).map(|number| Parked::relay(number, "a", "waiting")));
    fill(&fixture, &rows).await;
    let letters = fixture.outbox.dead_letters();
    let shown = letters.show(relay(1)).await.unwrap().unwrap();
    assert_eq!((shown.letter.behind, shown.first_behind.len()), (299, 100));
    let states =
        "SELECT id || ' ' || state || ' ' || attempts FROM outbox_parked ORDER BY id LIMIT 2";
    letters.discard(relay(1), note()).finish().await.unwrap();
    assert_eq!(fixture.texts(states).await, ["2 failing 0", "3 waiting 0"]);
    // Head and those right behind it, in chunks that cut the lane.
    let some = (2..=150).map(relay).collect::<Selection>();
    let totals = letters
        .discard(some, note())
        .chunk_size(7)
        .finish()
        .await
        .unwrap();
    assert_eq!((totals.done, totals.chunks), (149, 22));
    assert_eq!(
        fixture.texts(states).await,
        ["151 failing 0", "152 waiting 0"]
    );
    letters.discard(relay(200), note()).finish().await.unwrap();
    assert_eq!(fixture.number(HEADLESS).await, 0);
    let all = LetterFilter::new().parked();
    assert_eq!(
        letters.discard(all, note()).finish().await.unwrap().done,
        149
    );
    assert_eq!(count(&fixture, "outbox_discarded").await, 300);
}
