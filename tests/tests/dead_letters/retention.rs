use std::time::Duration;

use outbox_runtime::dead_letters::{LetterFilter, LetterState, Selection};
use outbox_runtime::retention::{Cleaner, Keep, Removed, Retention};
use outbox_tests::{Fixture, TestDatabase, on_both_databases};

use crate::stock::{Parked, count, fill, inbox, note, relay};

on_both_databases!(
    only_what_was_discarded_goes_by_age_and_floor,
    what_goes_can_be_archived,
);

fn at_once() -> Keep {
    Keep::for_age(Duration::ZERO)
}

async fn clean<DB: TestDatabase>(fixture: &Fixture<DB>, retention: Retention) -> Removed {
    // Whatever happened in this very millisecond is not older than nothing yet.
    tokio::time::sleep(Duration::from_millis(5)).await;
    let retention = retention.chunk(7).pause(Duration::ZERO);
    let cleaner = Cleaner::new(fixture.outbox.clone(), retention).unwrap();
    cleaner.clean_once().await.unwrap()
}

async fn fill_and_discard<DB: TestDatabase>(fixture: &Fixture<DB>) {
    let mut rows = Vec::new();
    for number in 1..=20 {
        rows.push(Parked::relay(number, &format!("a{number}"), "dead"));
        rows.push(Parked::inbox(number, "c", &format!("a{number}"), "dead"));
    }
    fill(fixture, &rows).await;
    let letters = fixture.outbox.dead_letters();
    // Notes about letters that stay parked come first, more than a step looks at.
    letters
        .requeue(LetterFilter::new(), note())
        .finish()
        .await
        .unwrap();
    let half = (1..=10).flat_map(|number| [relay(number), inbox(number)]);
    let totals = letters
        .discard(half.collect::<Selection>(), note())
        .finish()
        .await;
    assert_eq!(totals.unwrap().done, 20);
}

async fn only_what_was_discarded_goes_by_age_and_floor<DB: TestDatabase>(fixture: Fixture<DB>) {
    fill_and_discard(&fixture).await;
    let nothing = Removed::default();
    let other = Retention::new()
        .outbox(at_once())
        .journal(at_once())
        .inbox(at_once());
    assert_eq!(
        clean(&fixture, other).await,
        nothing,
        "only when it is told"
    );
    let day = Keep::for_age(Duration::from_secs(24 * 3600));
    assert_eq!(
        clean(&fixture, Retention::new().dead_letters(day)).await,
        nothing
    );
    let many = Retention::new().dead_letters(at_once().at_least(100));
    assert_eq!(clean(&fixture, many).await, nothing);
    let removed = clean(
        &fixture,
        Retention::new().dead_letters(at_once().at_least(6)),
    )
    .await;
    assert_eq!(removed.discarded, 14);
    // Two notes of each letter that is gone: that it was requeued, and that it was discarded.
    let left = count(&fixture, "outbox_operator_note").await;
    assert_eq!(removed.notes, 60 - left.unsigned_abs());
    let removed = clean(&fixture, Retention::new().dead_letters(at_once())).await;
    assert_eq!(removed.discarded, 6);
    assert_eq!(count(&fixture, "outbox_parked").await, 10);
    assert_eq!(count(&fixture, "inbox_parked").await, 10);
    assert_eq!(
        count(&fixture, "outbox_operator_note").await,
        20,
        "of letters that are parked"
    );
    let letters = fixture.outbox.dead_letters();
    assert_eq!(letters.show(relay(1)).await.unwrap(), None);
    let kept = letters.show(relay(11)).await.unwrap().unwrap();
    assert_eq!(kept.notes.len(), 1);
    let discarded = LetterFilter::new().states([LetterState::Discarded]);
    assert_eq!(letters.count(&discarded).await.unwrap(), 0);
    assert_eq!(
        letters.count(&LetterFilter::new().parked()).await.unwrap(),
        20
    );
    for archive in ["outbox_discarded_archive", "outbox_operator_note_archive"] {
        assert_eq!(count(&fixture, archive).await, 0);
    }
}

async fn what_goes_can_be_archived<DB: TestDatabase>(fixture: Fixture<DB>) {
    fill_and_discard(&fixture).await;
    let payloads = "SELECT payload || last_cause || CAST(causes AS text) FROM";
    let before = fixture
        .texts(&format!("{payloads} outbox_discarded ORDER BY id"))
        .await;
    let removed = clean(&fixture, Retention::new().dead_letters(at_once()).archive()).await;
    assert_eq!((removed.discarded, removed.notes), (20, 40));
    let after = fixture
        .texts(&format!("{payloads} outbox_discarded_archive ORDER BY id"))
        .await;
    assert_eq!(after, before);
    assert_eq!(count(&fixture, "outbox_operator_note_archive").await, 40);
    assert_eq!(count(&fixture, "outbox_operator_note").await, 20);
    assert_eq!(count(&fixture, "outbox_parked").await, 10);
}
