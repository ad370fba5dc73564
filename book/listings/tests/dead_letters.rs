//! Listings of the chapter on dead letters.

use std::time::Duration;

use book_listings::SqliteFile;
use outbox_runtime::Message;
use outbox_runtime::broker::{PublishError, Publisher};
use outbox_runtime::dead_letters::{
    Act, DeadLetterError, DeadLetters, LetterFilter, LetterId, LetterState, Note, Selection, Side,
};
use outbox_runtime::prelude::*;
use outbox_runtime::retention::{Keep, Retention};

#[domain_event(version = 1)]
pub struct LampSwitched {
    pub on: bool,
}

/// Takes nothing, ever.
struct Wall;

#[async_trait::async_trait]
impl Publisher for Wall {
    async fn publish(&self, messages: &[Message]) -> Vec<Result<(), PublishError>> {
        let refused = |_| Err(PublishError::permanent("no such topic: lamps"));
        messages.iter().map(refused).collect()
    }
}

type TestResult = Result<(), Box<dyn std::error::Error>>;

/// A house with three dead letters, and no relay that runs any more.
async fn house() -> Result<(DeadLetters<sqlx::Sqlite>, SqliteFile), Box<dyn std::error::Error>> {
    let file = SqliteFile::with_tables("").await;
    let outbox = Outbox::new("house", file.pool.clone());
    outbox.migrate().await?;
    for on in [true, false, true] {
        let mut uow = outbox.begin(MessageContext::new()).await?;
        uow.raise(LampSwitched { on })?;
        uow.commit().await?;
    }
    let letters = outbox.dead_letters();
    let app = App::new(outbox).publisher(Wall).without_consumers();
    let running = app.start().await?;
    while letters.count(&LetterFilter::new()).await? < 3 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    running.shutdown().await?;
    Ok((letters, file))
}

#[tokio::test]
async fn letters_are_listed_and_shown() -> TestResult {
    let (letters, _file) = house().await?;
    // ANCHOR: list
    let filter = LetterFilter::new() // dead ones, unless it says otherwise
        .event_type("LampSwitched")
        .newer_than(Duration::from_secs(24 * 3600))
        .cause("no such topic");

    let mut after = None;
    loop {
        let page = letters.list(&filter, after, 2).await?;
        for letter in &page.letters {
            let cause = letter.last_cause.as_deref().unwrap_or_default();
            println!(
                "{} {} {cause}, {} behind",
                letter.id, letter.event_type, letter.behind
            );
        }
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    // ANCHOR_END: list
    let page = letters.list(&filter, None, 10).await?;
    assert_eq!(page.letters.len(), 3);
    // ANCHOR: show
    let id: LetterId = "relay:1".parse()?;
    if let Some(details) = letters.show(id).await? {
        println!("{}", details.content.payload); // byte for byte
        for attempt in &details.failed_attempts {
            println!(
                "{} {}: {}",
                attempt.attempt, attempt.failed_at, attempt.cause
            );
        }
        for note in &details.notes {
            println!(
                "{} by {}: {}",
                note.act.as_str(),
                note.operator,
                note.reason
            );
        }
    }
    // ANCHOR_END: show
    let details = letters.show(id).await?.ok_or("no letter")?;
    assert_eq!(details.content.payload, r#"{"on":true}"#);
    assert_eq!(details.failed_attempts.len(), 1);
    Ok(())
}

// ANCHOR: requeue
async fn retry_lamps<DB: Backend>(letters: &DeadLetters<DB>) -> Result<u64, DeadLetterError> {
    let lamps = LetterFilter::new().event_type("LampSwitched");
    let plan = letters.dry_run(Act::Requeue, lamps.clone());
    let plan = plan.finish().await?;
    println!("{} would be tried again, {} not", plan.done, plan.refused);

    let total = letters.count(&lamps).await?;
    let note = Note::new("ada", "the topic exists now, incident 4711")?;
    let mut run = letters.requeue(lamps, note).chunk_size(50);
    while let Some(chunk) = run.next_chunk().await? {
        println!("{} of {total}", chunk.so_far.done + chunk.so_far.refused);
    }
    Ok(total)
}
// ANCHOR_END: requeue

// ANCHOR: discard
async fn give_up<DB: Backend>(letters: &DeadLetters<DB>) -> Result<u64, DeadLetterError> {
    let ids = [1, 2, 99].map(|number| LetterId::new(Side::Relay, number));
    let note = Note::new("ada", "test data, agreed with the lamp team")?;
    let mut run = letters.discard(Selection::from_iter(ids), note);
    while let Some(chunk) = run.next_chunk().await? {
        for outcome in &chunk.outcomes {
            if let Some(refusal) = &outcome.refusal {
                println!("{}: {refusal}", outcome.id); // 99: there is no such letter ..
            }
        }
    }
    letters
        .count(&LetterFilter::new().states([LetterState::Discarded]))
        .await
}
// ANCHOR_END: discard

#[tokio::test]
async fn letters_are_requeued_and_discarded() -> TestResult {
    let (letters, _file) = house().await?;
    assert_eq!(retry_lamps(&letters).await?, 3);
    assert_eq!(letters.count(&LetterFilter::new()).await?, 0);
    assert_eq!(give_up(&letters).await?, 2);
    Ok(())
}

#[test]
fn discarded_letters_go_by_age() {
    let day = Duration::from_secs(24 * 3600);
    // ANCHOR: retention
    let retention = Retention::new()
        .dead_letters(Keep::for_age(90 * day).at_least(1_000))
        .archive();
    // ANCHOR_END: retention
    assert!(retention.check().is_ok());
}
