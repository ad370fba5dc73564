//! Rows that an event costs on PostgreSQL, counted by triggers on every table. A number that grows
//! here is a write that every user pays, and room that a vacuum has to win back.
#![cfg(feature = "postgres")]
#![allow(clippy::unwrap_used)]

mod consumer_support;

use std::collections::BTreeMap;

use consumer_support::{CREDIT, Running, Script, consumer, open_accounts, paid};
use outbox_runtime::prelude::*;
use outbox_tests::{
    Answer, Fixture, Postman, RecordingPublisher, RunningRelay, insert_events, message, postgres,
};
use sqlx::Postgres;

/// Counts what is written from now on, by table and kind.
struct Writes<'f>(&'f Fixture<Postgres>);

impl<'f> Writes<'f> {
    async fn count(fixture: &'f Fixture<Postgres>) -> Self {
        fixture
            .run_sql(
                "CREATE TABLE written (what text NOT NULL);
                 CREATE FUNCTION count_write() RETURNS trigger LANGUAGE plpgsql AS $$
                 BEGIN
                     INSERT INTO written VALUES (lower(tg_op) || ' ' || tg_table_name);
                     RETURN NULL;
                 END $$;
                 DO $$
                 DECLARE name text;
                 BEGIN
                     FOR name IN
                         SELECT tablename FROM pg_tables
                         WHERE schemaname = current_schema() AND tablename <> 'written'
                     LOOP
                         EXECUTE format(
                             'CREATE TRIGGER counted AFTER INSERT OR UPDATE OR DELETE ON %I
                              FOR EACH ROW EXECUTE FUNCTION count_write()', name);
                     END LOOP;
                 END $$",
            )
            .await;
        Self(fixture)
    }

    /// What was written since the last call.
    async fn take(&self) -> BTreeMap<String, i64> {
        let rows: Vec<(String, i64)> = sqlx::query_as(
            "WITH seen AS (DELETE FROM written RETURNING what)
             SELECT what, count(*) FROM seen GROUP BY what",
        )
        .fetch_all(&self.0.pool)
        .await
        .unwrap();
        rows.into_iter().collect()
    }
}

fn written<const N: usize>(rows: [(&str, i64); N]) -> BTreeMap<String, i64> {
    rows.map(|(what, count)| (what.to_owned(), count)).into()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_commit_writes_a_row_an_event_and_nothing_else() {
    use outbox_tests::bank::{Account, SCHEMA, id};

    let Some(fixture) = postgres().await else {
        return;
    };
    fixture.run_sql(SCHEMA).await;
    let writes = Writes::count(&fixture).await;
    let mut uow = fixture.outbox.begin(MessageContext::new()).await.unwrap();
    uow.add(&mut Account::open("a")).await.unwrap();
    uow.commit().await.unwrap();
    let expected = written([("insert account", 1), ("insert outbox_message", 1)]);
    assert_eq!(writes.take().await, expected);

    let mut uow = fixture.outbox.begin(MessageContext::new()).await.unwrap();
    let mut account = uow.get::<Account>(&id("a")).await.unwrap();
    for _ in 0..20 {
        account.deposit(1);
    }
    uow.save(&mut account).await.unwrap();
    uow.commit().await.unwrap();
    let expected = written([("insert outbox_message", 20), ("update account", 1)]);
    assert_eq!(writes.take().await, expected);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_relay_writes_no_row_for_a_message() {
    let Some(fixture) = postgres().await else {
        return;
    };
    let publisher = RecordingPublisher::new();
    let relay = RunningRelay::start(&fixture.outbox, &publisher);
    fixture.run_sql(&insert_events("first", [1])).await;
    publisher.wait_for(1).await;
    let writes = Writes::count(&fixture).await;
    for aggregate in 0..20 {
        let insert = insert_events(&format!("a{aggregate}"), 1..=100);
        fixture.run_sql(&insert).await;
    }
    publisher.wait_for(2_001).await;
    relay.stop().await;
    let writes = writes.take().await;
    let of = |what: &str| writes.get(what).copied().unwrap_or_default();
    assert_eq!(of("insert outbox_message"), 2_000);
    assert_eq!(of("update outbox_message") + of("delete outbox_message"), 0);
    // How often positions are stored goes by time, not by messages; each time costs an entry in the
    // journal and a row for each shard that moved, and the end one for each shard.
    let stored = of("insert outbox_journal");
    assert!(stored > 0, "{writes:?}");
    let renewals = of("update outbox_relay");
    let most = 64 * (stored + renewals + 2);
    assert!(of("update outbox_shard") <= most, "{writes:?}");
    let known = [
        "insert outbox_message",
        "insert outbox_journal",
        "update outbox_shard",
        "update outbox_relay",
        "insert outbox_relay",
        "delete outbox_relay",
    ];
    let others: Vec<_> = writes
        .keys()
        .filter(|what| !known.contains(&what.as_str()))
        .collect();
    assert!(others.is_empty(), "{others:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_message_that_is_handled_writes_one_row_besides_its_effect_and_a_duplicate_none() {
    let Some(fixture) = postgres().await else {
        return;
    };
    open_accounts(&fixture, &["a"]).await;
    let (postman, script) = (Postman::new(), Script::default());
    let writes = Writes::count(&fixture).await;
    let running = Running::start(consumer(&fixture, &postman, &script, &[CREDIT]));
    let message = message(&paid("a", 100), "order-1", 1);
    assert_eq!(
        postman.deliver(&message).await.unwrap(),
        Answer::Acknowledged
    );
    let effect = [
        ("insert inbox_message", 1),
        // The handler's aggregate, and the event that it raised.
        ("insert outbox_message", 1),
        ("update accounts", 1),
    ];
    assert_eq!(writes.take().await, written(effect));
    assert_eq!(
        postman.deliver(&message).await.unwrap(),
        Answer::Acknowledged
    );
    assert_eq!(writes.take().await, written([]));
    running.stop().await.unwrap();
}
