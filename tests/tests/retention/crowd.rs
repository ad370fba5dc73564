use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use outbox_runtime::prelude::*;
use outbox_runtime::retention::{Cleaner, Keep, Removed, Retention};
use outbox_tests::bank::{BankDb, BellRang};
use outbox_tests::{Fixture, RecordingPublisher, RunningRelay, on_both_databases};
use tokio::task::JoinSet;

on_both_databases!(cleaners_relays_and_writers_at_once);

const OLD_ROWS: usize = 40_000;
const WRITERS: usize = 4;
const COMMITS: usize = 300;
const INBOX_ROWS: i64 = 20_000;

/// Everything is old enough at once, so only the positions keep a row from going too early.
async fn cleaners_relays_and_writers_at_once<DB: BankDb>(fixture: Fixture<DB>) {
    fill(&fixture).await;
    let publisher = RecordingPublisher::new();
    let relays = [
        RunningRelay::start(&fixture.outbox, &publisher),
        RunningRelay::start(&fixture.outbox, &publisher),
    ];
    let retention = || {
        let keep = Keep::for_age(Duration::ZERO);
        Retention::new()
            .outbox(keep)
            .journal(keep.at_least(10))
            .inbox(keep.at_least(100))
            .chunk(500)
            .pause(Duration::from_millis(1))
            .archive()
    };
    let is_over = Arc::new(AtomicBool::new(false));
    let mut cleaners = JoinSet::new();
    for _ in 0..2 {
        let cleaner = Cleaner::new(fixture.outbox.clone(), retention()).unwrap();
        let is_over = Arc::clone(&is_over);
        cleaners.spawn(async move {
            let mut sum = Removed::default();
            while !is_over.load(Ordering::SeqCst) {
                let removed = cleaner.clean_once().await.expect("no deadlock");
                sum.outbox += removed.outbox;
                sum.inbox += removed.inbox;
                sum.journal += removed.journal;
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            sum
        });
    }
    let mut writers = JoinSet::new();
    for _ in 0..WRITERS {
        let outbox = fixture.outbox.clone();
        writers.spawn(async move {
            for times in 0..COMMITS {
                let mut uow = outbox.begin(MessageContext::new()).await.unwrap();
                let times = u32::try_from(times).unwrap();
                uow.raise(BellRang { times }).unwrap();
                uow.commit().await.expect("no deadlock");
            }
        });
    }
    while let Some(done) = writers.join_next().await {
        done.unwrap();
    }
    let all = OLD_ROWS + WRITERS * COMMITS;
    let published = async {
        while publisher.distinct() < all {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(120), published)
        .await
        .expect("all are published: none was removed before");
    for relay in relays {
        relay.stop().await;
    }
    is_over.store(true, Ordering::SeqCst);
    let mut sum = Removed::default();
    while let Some(removed) = cleaners.join_next().await {
        let removed = removed.unwrap();
        sum.outbox += removed.outbox;
        sum.inbox += removed.inbox;
        sum.journal += removed.journal;
    }
    println!("{sum:?}");
    assert_eq!(publisher.distinct(), all);
    let count = async |table: &str| {
        let sql = format!("SELECT count(*) FROM {table}");
        fixture.number(&sql).await.unsigned_abs()
    };
    assert_eq!(count("outbox_message_archive").await, sum.outbox);
    assert_eq!(count("outbox_message").await + sum.outbox, all as u64);
    assert!(
        sum.outbox > OLD_ROWS as u64 / 2,
        "they did clean beside the others"
    );
    let above = "SELECT count(*) FROM outbox_message_archive
        WHERE id > (SELECT min(position) FROM outbox_shard)";
    assert_eq!(fixture.number(above).await, 0, "nothing unfinished went");
    assert_eq!(count("outbox_journal_archive").await, sum.journal);
    assert!(count("outbox_journal").await >= 10.min(count("outbox_journal_archive").await));
    assert_eq!(count("inbox_message_archive").await, sum.inbox);
    assert_eq!(
        count("inbox_message").await + sum.inbox,
        INBOX_ROWS.unsigned_abs()
    );
    assert!(count("inbox_message").await >= 100);
}

async fn fill<DB: BankDb>(fixture: &Fixture<DB>) {
    let numbers = |rows: i64| {
        format!("WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < {rows})")
    };
    let old_rows = i64::try_from(OLD_ROWS).unwrap();
    let (payload, message_id, time) = if DB::NAME == "SQLite" {
        ("'{\"times\":' || n || '}'", "randomblob(16)", "1000000 + n")
    } else {
        (
            "('{\"times\":' || n || '}')::json",
            "gen_random_uuid()",
            "timestamptz '2020-01-01' + n * interval '1 second'",
        )
    };
    let events = format!(
        "{} INSERT INTO outbox_message (event_type, occurred_at, payload) SELECT 'bell.rang', {time}, {payload} FROM n",
        numbers(old_rows)
    );
    // The database orders the numbers as it likes; ids need not follow them.
    fixture.run_sql(&events).await;
    let inbox = format!(
        "{} INSERT INTO inbox_message (consumer, idempotency_key, message_id, event_type, processed_at) \
         SELECT 'c', CAST(n AS TEXT), {message_id}, 'e', {time} FROM n",
        numbers(INBOX_ROWS)
    );
    fixture.run_sql(&inbox).await;
}
