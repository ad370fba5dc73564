use std::time::Duration;

use outbox_runtime::app::App;
use outbox_runtime::broker::InProcessBroker;
use outbox_runtime::prelude::*;
use outbox_tests::{Fixture, TestDatabase, bank};

use super::consumer_support::*;
use super::in_one_thread;
use super::recording::{Figures, Recording};

in_one_thread!(an_app_shows_what_waits_in_its_tables);

const WATCH: &str = "ledger.watch";

/// Does not take debts.
#[idempotent_handler(consumer = "ledger.watch", key = "{message_id}")]
async fn watch<DB: Backend>(
    event: Envelope<Paid>,
    _: &mut UnitOfWork<'_, DB>,
) -> Result<(), LedgerError> {
    if event.cents < 0 {
        return Err(LedgerError::Scripted(FailureKind::Permanent));
    }
    Ok(())
}

async fn pay<DB: TestDatabase>(fixture: &Fixture<DB>, cents: i64, times: usize) {
    for _ in 0..times {
        let mut uow = fixture.outbox.begin(MessageContext::new()).await.unwrap();
        uow.raise(paid("a", cents)).unwrap();
        uow.commit().await.unwrap();
    }
}

async fn until(recording: &Recording, condition: impl Fn(&Figures) -> bool) -> Figures {
    let reached = async {
        loop {
            let figures = recording.figures();
            if condition(&figures) {
                return figures;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    let in_time = tokio::time::timeout(Duration::from_secs(60), reached).await;
    in_time.unwrap_or_else(|_| panic!("{:?}", recording.figures()))
}

pub async fn an_app_shows_what_waits_in_its_tables<DB>(fixture: Fixture<DB>)
where
    DB: TestDatabase + Stores<Account>,
{
    let recording = Recording::start();
    open_accounts(&fixture, &["a"]).await;
    let quick = Duration::from_millis(100);
    let running = App::new(fixture.outbox.clone())
        .without_table_check::<bank::Account>()
        .broker(InProcessBroker::new())
        .select_consumers(|consumer| consumer == WATCH)
        .consumer_options(options())
        .relay_options(outbox_tests::quick().backlog_interval(quick))
        .metrics_interval(Some(quick))
        .start()
        .await
        .unwrap();
    running.started().await;
    pay(&fixture, 1, 10).await;
    eventually(|| running.counts().consumers.handled == 10).await;
    let labels = "consumer=ledger.watch,event_type=money.paid";
    let delays = recording
        .figures()
        .values("inbox_published_to_handled_seconds", labels);
    assert_eq!(delays.len(), 10);
    assert!(delays.iter().all(|delay| (0.0..3600.0).contains(delay)));

    pay(&fixture, -1, 1).await;
    // Some of other releases' or programs' consumers, and of nobody.
    for consumer in ["somebody-else", "another", ""] {
        park_in_inbox(&fixture, consumer).await;
    }
    let figures = until(&recording, |figures| {
        let name = "inbox_parked_messages";
        figures.gauge(name, "consumer=ledger.watch,state=dead") == Some(1.0)
            && figures.gauge(name, "consumer=(other),state=dead") == Some(2.0)
            && figures.gauge(name, "consumer=(none),state=dead") == Some(1.0)
    })
    .await;
    assert_eq!(
        figures.gauge(
            "inbox_parked_messages",
            "consumer=ledger.watch,state=waiting"
        ),
        Some(0.0)
    );
    assert_eq!(
        figures.count("inbox_dead_total", "consumer=ledger.watch"),
        1
    );

    // Nobody moves this shard on, so what is in it waits.
    fixture
        .run_sql(&format!(
            "UPDATE outbox_shard SET owner = {}, epoch = epoch + 1, lease_until = {}",
            if DB::NAME == "SQLite" {
                "randomblob(16)"
            } else {
                "gen_random_uuid()"
            },
            if DB::NAME == "SQLite" {
                "9000000000000"
            } else {
                "'2200-01-01'"
            },
        ))
        .await;
    eventually_lost(&recording).await;
    fixture
        .run_sql(&outbox_tests::insert_events("w", 1..=7))
        .await;
    park_in_relay(&fixture).await;
    let figures = until(&recording, |figures| {
        figures.gauge("relay_pending_messages", "") == Some(7.0)
            && figures.gauge("relay_parked_messages", "state=dead") == Some(1.0)
            && figures.gauge("relay_parked_messages", "state=waiting") == Some(2.0)
            && figures.gauge("relay_oldest_pending_age_seconds", "") > Some(0.0)
    })
    .await;
    assert!(figures.gauge("relay_watermark_lag", "") >= Some(7.0));
    running.shutdown().await.unwrap();
    assert_eq!(
        recording
            .figures()
            .count("inbox_retries_total", "consumer=ledger.watch"),
        0
    );
}

async fn eventually_lost(recording: &Recording) {
    until(recording, |figures| {
        figures.count("relay_lease_changes_total", "change=lost") == 64
    })
    .await;
}

async fn park_in_inbox<DB: TestDatabase>(fixture: &Fixture<DB>, consumer: &str) {
    let message_id = if DB::NAME == "SQLite" {
        "randomblob(16)"
    } else {
        "gen_random_uuid()"
    };
    fixture
        .run_sql(&format!(
            "INSERT INTO inbox_parked (consumer, lane, state, message_id, event_type, schema_version, \
             correlation_id, producer, occurred_at, occurred_nanos, payload) \
             SELECT '{consumer}', '{consumer}', 'dead', {message_id}, 'e', 1, 'c', 'p', \
             min(occurred_at), 0, '{{}}' FROM outbox_message"
        ))
        .await;
}

/// A dead message and two behind it, as a relay would have left them.
async fn park_in_relay<DB: TestDatabase>(fixture: &Fixture<DB>) {
    fixture
        .run_sql(
            "INSERT INTO outbox_parked (id, shard, lane, state, message_id, event_type, \
             schema_version, occurred_at, payload) \
             SELECT id, 0, 'lane', CASE WHEN id = 1 THEN 'dead' ELSE 'waiting' END, message_id, \
             event_type, 1, occurred_at, payload FROM outbox_message WHERE id <= 3",
        )
        .await;
}
