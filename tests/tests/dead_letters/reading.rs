use std::time::Duration;

use outbox_runtime::dead_letters::{
    Act, DeadLetterError, LetterFilter, LetterId, LetterState, Selection, Side,
};
use outbox_runtime::prelude::*;
use outbox_tests::{Fixture, TestDatabase, on_both_databases};

use crate::stock::{PAYLOAD, Parked, fill, inbox, note, relay, snapshot};

on_both_databases!(
    each_condition_of_a_filter_narrows_it,
    a_filters_text_stands_for_itself,
    pages_follow_each_other_while_letters_come_and_go,
    a_letter_is_shown_whole_and_byte_for_byte,
    what_no_program_of_ours_wrote_is_shown_too,
    a_schema_or_a_prefix_of_its_own_is_used,
);

async fn ids<DB: TestDatabase>(fixture: &Fixture<DB>, filter: LetterFilter) -> Vec<LetterId> {
    let letters = fixture.outbox.dead_letters();
    let page = letters.list(&filter, None, 1_000).await.unwrap();
    assert_eq!(page.next, None);
    let count = letters.count(&filter).await.unwrap();
    assert_eq!(count, page.letters.len() as u64);
    page.letters.iter().map(|letter| letter.id).collect()
}

async fn each_condition_of_a_filter_narrows_it<DB: TestDatabase>(fixture: Fixture<DB>) {
    let mut rows = vec![
        Parked::relay(1, "a", "dead"),
        Parked::relay(2, "a", "waiting"),
        Parked::relay(3, "b", "failing"),
        Parked::inbox(1, "c1", "a", "dead"),
        Parked::inbox(2, "c1", "a", "waiting"),
        Parked::inbox(3, "c2", "b", "dead"),
        Parked::inbox(4, "", "d", "dead"),
    ];
    rows[0].age = Duration::from_secs(7_200);
    rows[3].age = Duration::from_secs(600);
    rows[5].event_type = "Other";
    rows[6].cause = "no handler takes it".to_owned();
    fill(&fixture, &rows).await;
    let new = LetterFilter::new;
    let dead = [relay(1), inbox(1), inbox(3), inbox(4)];
    assert_eq!(ids(&fixture, new()).await, dead);
    assert_eq!(ids(&fixture, new().side(Side::Relay)).await, [relay(1)]);
    assert_eq!(ids(&fixture, new().side(Side::Inbox)).await, dead[1..]);
    assert_eq!(ids(&fixture, new().parked()).await.len(), 7);
    let states = |state| new().states([state]);
    assert_eq!(
        ids(&fixture, states(LetterState::Failing)).await,
        [relay(3)]
    );
    let waiting = [relay(2), inbox(2)];
    assert_eq!(ids(&fixture, states(LetterState::Waiting)).await, waiting);
    assert_eq!(ids(&fixture, states(LetterState::Discarded)).await, []);
    assert_eq!(ids(&fixture, new().states([])).await, []);
    assert_eq!(ids(&fixture, new().event_type("Other")).await, [inbox(3)]);
    assert_eq!(ids(&fixture, new().event_type("other")).await, []);
    assert_eq!(ids(&fixture, new().aggregate_type("Thing")).await, dead);
    assert_eq!(ids(&fixture, new().aggregate_type("Thin")).await, []);
    let a = [relay(1), inbox(1)];
    assert_eq!(ids(&fixture, new().aggregate_id("a")).await, a);
    assert_eq!(ids(&fixture, new().correlation_id("c-a")).await, a);
    assert_eq!(ids(&fixture, new().consumer("c1")).await, [inbox(1)]);
    assert_eq!(ids(&fixture, new().consumer("")).await, [inbox(4)]);
    assert_eq!(
        ids(&fixture, new().message_id(rows[5].message_id())).await,
        [inbox(3)]
    );
    let hour = Duration::from_secs(3_600);
    assert_eq!(ids(&fixture, new().older_than(hour)).await, [relay(1)]);
    assert_eq!(ids(&fixture, new().newer_than(hour)).await, dead[1..]);
    let between = new().newer_than(hour).older_than(Duration::from_secs(60));
    assert_eq!(ids(&fixture, between).await, [inbox(1)]);
    assert_eq!(ids(&fixture, new().newer_than(Duration::MAX)).await, dead);
    assert_eq!(ids(&fixture, new().older_than(Duration::MAX)).await, []);
    assert_eq!(ids(&fixture, new().cause("no handler")).await, [inbox(4)]);
    let both = new().consumer("c1").aggregate_id("b");
    assert_eq!(ids(&fixture, both).await, []);
    let letters = fixture.outbox.dead_letters();
    let run = letters.discard(new().cause("no handler"), note());
    assert_eq!(run.finish().await.unwrap().done, 1);
    assert_eq!(
        ids(&fixture, states(LetterState::Discarded)).await,
        [inbox(4)]
    );
    let nul = letters.list(&new().cause("a\0"), None, 10).await;
    assert!(matches!(nul, Err(DeadLetterError::Nul { .. })), "{nul:?}");
    for limit in [0, 1_001] {
        let page = letters.list(&new(), None, limit).await;
        assert!(
            matches!(page, Err(DeadLetterError::Range { .. })),
            "{page:?}"
        );
        let chunk = letters.dry_run(Act::Discard, new()).chunk_size(limit);
        assert!(matches!(
            chunk.finish().await,
            Err(DeadLetterError::Range { .. })
        ));
    }
}

async fn a_filters_text_stands_for_itself<DB: TestDatabase>(fixture: Fixture<DB>) {
    let causes = ["100% full", "a_b", "aXb", "it's \\ \"so\"", "ÉTÉ", "*?["];
    let rows: Vec<_> = causes
        .iter()
        .zip(1..)
        .map(|(cause, number)| Parked {
            cause: (*cause).to_owned(),
            ..Parked::inbox(number, "c", &format!("a{number}"), "dead")
        })
        .collect();
    fill(&fixture, &rows).await;
    let found = async |text: &str| ids(&fixture, LetterFilter::new().cause(text)).await;
    assert_eq!(found("%").await, [inbox(1)]);
    assert_eq!(found("_").await, [inbox(2)]);
    assert_eq!(found("a%b").await, []);
    assert_eq!(found("'s \\ \"").await, [inbox(4)]);
    assert_eq!(found("TÉ").await, [inbox(5)]);
    assert_eq!(found("té").await, []);
    assert_eq!(found("*?[").await, [inbox(6)]);
    assert_eq!(found("'; DROP TABLE outbox_parked; --").await, []);
    assert_eq!(found("").await.len(), 6);
    for text in ["%", "_", "a_"] {
        let by_name = LetterFilter::new().aggregate_id(text);
        assert_eq!(ids(&fixture, by_name.clone()).await, []);
        assert_eq!(ids(&fixture, by_name.consumer(text)).await, []);
    }
}

async fn pages_follow_each_other_while_letters_come_and_go<DB: TestDatabase>(fixture: Fixture<DB>) {
    let mut rows = Vec::new();
    for number in 1..=20 {
        rows.push(Parked::relay(number * 2, &format!("r{number}"), "dead"));
        rows.push(Parked::inbox(
            number * 2,
            "c",
            &format!("i{number}"),
            "dead",
        ));
    }
    fill(&fixture, &rows).await;
    let letters = fixture.outbox.dead_letters();
    let filter = LetterFilter::new();
    for size in [1, 3, 20, 39, 40, 41] {
        let (mut all, mut after) = (Vec::new(), None);
        loop {
            let page = letters.list(&filter, after, size).await.unwrap();
            assert!(page.letters.len() <= size as usize);
            all.extend(page.letters.iter().map(|letter| letter.id));
            after = page.next;
            if after.is_none() {
                break;
            }
            assert_eq!(page.letters.len(), size as usize);
        }
        let expected: Vec<_> = (1..=20)
            .map(|number| relay(number * 2))
            .chain((1..=20).map(|number| inbox(number * 2)))
            .collect();
        assert_eq!(all, expected, "pages of {size}");
    }
    // What goes and comes on a page that was read moves nothing on the next one.
    let first = letters.list(&filter, None, 5).await.unwrap();
    assert_eq!(first.next, Some(relay(10)));
    let gone = Selection::from_iter([relay(2), relay(10)]);
    letters.discard(gone, note()).finish().await.unwrap();
    fill(&fixture, &[Parked::relay(3, "new", "dead")]).await;
    let second = letters.list(&filter, first.next, 2).await.unwrap();
    let found: Vec<_> = second.letters.iter().map(|letter| letter.id).collect();
    assert_eq!(found, [relay(12), relay(14)]);
}

async fn a_letter_is_shown_whole_and_byte_for_byte<DB: TestDatabase>(fixture: Fixture<DB>) {
    let mut rows = vec![
        Parked::relay(1, "a", "dead"),
        Parked::relay(2, "a", "waiting"),
        Parked::relay(3, "a", "waiting"),
        Parked::inbox(1, "c", "a", "dead"),
        Parked::inbox(2, "c", "a", "dead"),
        Parked::inbox(3, "other", "a", "dead"),
    ];
    rows[0].attempts = 3;
    rows[3].attempts = 2;
    fill(&fixture, &rows).await;
    let letters = fixture.outbox.dead_letters();
    for (id, attempts, behind) in [
        (relay(1), 3, vec![relay(2), relay(3)]),
        (inbox(1), 2, vec![inbox(2)]),
    ] {
        let before = letters.show(id).await.unwrap().unwrap();
        let letter = &before.letter;
        assert_eq!((letter.id, letter.state), (id, LetterState::Dead));
        assert_eq!(letter.attempts, attempts);
        assert_eq!(letter.behind, behind.len() as u64);
        assert_eq!(before.first_behind, behind);
        assert_eq!(before.content.payload, PAYLOAD);
        assert_eq!(letter.payload_bytes, PAYLOAD.len() as u64);
        assert_eq!(before.content.headers.as_deref(), Some("{\"h\":\"1\"}"));
        assert_eq!(before.content.causation_id.as_deref(), Some("cause-7"));
        assert_eq!(before.content.traceparent.as_deref(), Some("00-trace-01"));
        assert_eq!(letter.producer.as_deref(), Some("shop"));
        let numbers: Vec<_> = before
            .failed_attempts
            .iter()
            .map(|one| one.attempt)
            .collect();
        assert_eq!(numbers, (1..=attempts).collect::<Vec<_>>());
        assert!(
            before
                .failed_attempts
                .iter()
                .all(|one| one.cause == "refused")
        );
        assert_eq!(before.notes, []);
        assert!(
            !format!("{before:?}").contains("1.50"),
            "no payload in a Debug text"
        );
        let json = serde_json::to_value(&before).unwrap();
        assert_eq!(json["id"], id.to_string());
        assert_eq!(json["payload"], PAYLOAD);
        assert_eq!(json["state"], "dead");
        let listed =
            serde_json::to_string(&letters.list(&LetterFilter::new(), None, 9).await.unwrap());
        assert!(!listed.unwrap().contains("1.50"), "no payload in a list");

        letters.requeue(id, note()).finish().await.unwrap();
        letters.discard(id, note()).finish().await.unwrap();
        let after = letters.show(id).await.unwrap().unwrap();
        assert_eq!(after.letter.state, LetterState::Discarded);
        assert!(after.letter.discarded_at.is_some());
        assert_eq!(after.failed_attempts, before.failed_attempts);
        assert_eq!(after.content.payload, PAYLOAD);
        assert_eq!(after.content.headers, before.content.headers);
        assert_eq!(after.letter.occurred_at, before.letter.occurred_at);
        assert_eq!(after.letter.parked_at, before.letter.parked_at);
        let acts: Vec<_> = after
            .notes
            .iter()
            .map(|note| (note.act, &*note.operator))
            .collect();
        assert_eq!(acts, [(Act::Discard, "ada"), (Act::Requeue, "ada")]);
        assert_ne!(after.notes[0].run, after.notes[1].run);
        assert!(after.notes.iter().all(|note| note.letter == id));
    }
    // The second of a lane of dead ones, each for itself.
    let second = letters.show(inbox(2)).await.unwrap().unwrap();
    assert_eq!(
        second.letter.waits_behind, None,
        "the first one is discarded"
    );
    assert_eq!(second.letter.occurred_at.unwrap().nanosecond(), 123_456_789);
    let waiting = letters.show(relay(3)).await.unwrap().unwrap();
    assert_eq!(waiting.letter.waits_behind, Some(relay(2)));
    assert_eq!(letters.show(relay(99)).await.unwrap(), None);
}

/// Another program's row can be wrong in ways that ours can't.
async fn what_no_program_of_ours_wrote_is_shown_too<DB: TestDatabase>(fixture: Fixture<DB>) {
    fill(&fixture, &[Parked::relay(1, "a", "dead")]).await;
    let odd = if DB::NAME == "SQLite" {
        "UPDATE outbox_parked SET schema_version = 'x', headers = '[1]', occurred_at = 9e99, \
         sequence = 'y', message_id = 'sixteen letters!', correlation_id = 7, producer = NULL"
    } else {
        "UPDATE outbox_parked SET schema_version = -1, headers = '[1]', occurred_at = 'infinity', \
         correlation_id = NULL, producer = NULL"
    };
    fixture.run_sql(odd).await;
    let letters = fixture.outbox.dead_letters();
    let shown = letters.show(relay(1)).await.unwrap().unwrap();
    assert_eq!(shown.letter.occurred_at, None);
    assert_eq!(shown.letter.producer, None);
    assert_eq!(shown.content.headers.as_deref(), Some("[1]"));
    let totals = letters.discard(relay(1), note()).finish().await.unwrap();
    assert_eq!(totals.done, 1);
    let after = letters.show(relay(1)).await.unwrap().unwrap();
    assert_eq!(after.content.payload, shown.content.payload);
    assert_eq!(after.content.headers, shown.content.headers);
    assert_eq!(after.letter.message_id, shown.letter.message_id);
}

async fn a_schema_or_a_prefix_of_its_own_is_used<DB: TestDatabase>(fixture: Fixture<DB>) {
    let mut builder = Outbox::builder("other", fixture.pool.clone()).prefix("p_");
    if DB::NAME != "SQLite" {
        builder = builder.schema("elsewhere");
    }
    let outbox = builder.build().unwrap();
    outbox.migrate().await.unwrap();
    fill(
        &fixture,
        &[
            Parked::relay(1, "a", "dead"),
            Parked::inbox(1, "c", "a", "dead"),
        ],
    )
    .await;
    let before = snapshot(&fixture).await;
    let here = if DB::NAME == "SQLite" {
        "p_"
    } else {
        "elsewhere.p_"
    };
    for table in ["outbox_parked", "inbox_parked"] {
        let overriding = if table == "inbox_parked" && DB::NAME != "SQLite" {
            "OVERRIDING SYSTEM VALUE"
        } else {
            ""
        };
        let copy = format!("INSERT INTO {here}{table} {overriding} SELECT * FROM {table}");
        fixture.run_sql(&copy).await;
    }
    fixture
        .run_sql(&format!("UPDATE {here}outbox_shard SET position = 9"))
        .await;
    let letters = outbox.dead_letters();
    let filter = LetterFilter::new();
    assert_eq!(letters.count(&filter).await.unwrap(), 2);
    assert!(letters.show(relay(1)).await.unwrap().is_some());
    let totals = letters.requeue(relay(1), note()).finish().await.unwrap();
    assert_eq!(totals.done, 1);
    let totals = letters
        .discard(filter.parked(), note())
        .finish()
        .await
        .unwrap();
    assert_eq!(totals.done, 2);
    let kept = format!("SELECT count(*) FROM {here}outbox_discarded");
    assert_eq!(fixture.number(&kept).await, 2);
    let notes = format!("SELECT count(*) FROM {here}outbox_operator_note");
    assert_eq!(fixture.number(&notes).await, 3);
    assert_eq!(snapshot(&fixture).await, before);
}
