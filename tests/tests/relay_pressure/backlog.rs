//! The ceiling on the backlog.

use std::time::Duration;

use outbox_runtime::broker::PublishError;
use outbox_runtime::health::HealthHandle;
use outbox_runtime::relay::RelayOptions;
use outbox_runtime::store::{Backlog, BacklogStore};
use outbox_tests::{
    Fixture, RecordingPublisher, RunningRelay, TestDatabase, insert_events, on_both_databases,
    quick,
};

on_both_databases!(
    more_rows_than_the_ceiling_degrade_the_health_until_they_are_out,
    an_old_row_degrades_the_health_until_it_is_out,
    what_is_parked_is_not_pending,
    a_look_goes_only_as_far_as_it_is_told,
    a_relay_without_shards_looks_too,
);

const LONG: Duration = Duration::from_secs(1000);

fn watchful(rows: u32, age: Duration) -> RelayOptions {
    quick()
        .backlog_ceiling(rows, age)
        .backlog_interval(Duration::from_millis(100))
}

async fn told(health: &HealthHandle, text: &str) -> String {
    let told = health.wait_for(|health| health.to_string().contains(text));
    tokio::time::timeout(Duration::from_secs(60), told)
        .await
        .unwrap_or_else(|_| panic!("{text} is missing in: {}", health.get()))
        .to_string()
}

async fn healthy(health: &HealthHandle) {
    let healthy = health.wait_for(|health| health.is_healthy());
    let in_time = tokio::time::timeout(Duration::from_secs(60), healthy).await;
    assert!(in_time.is_ok(), "{}", health.get());
}

async fn more_rows_than_the_ceiling_degrade_the_health_until_they_are_out<DB: TestDatabase>(
    fixture: Fixture<DB>,
) {
    let publisher = RecordingPublisher::new();
    publisher.go_down();
    let relay = RunningRelay::start_with(&fixture.outbox, &publisher, watchful(10, LONG));
    for aggregate in ["a", "b", "c"] {
        fixture.run_sql(&insert_events(aggregate, 1..=4)).await;
    }
    let text = told(&relay.health, "above its ceiling").await;
    assert!(text.contains("12 rows are pending (ceiling: 10)"), "{text}");
    assert!(text.contains("lags 12 ids behind"), "{text}");
    assert!(!text.contains("oldest"), "{text}");
    let backlog = relay.backlog(|backlog| backlog.pending == 12).await;
    assert_eq!(backlog.oldest.map(|oldest| oldest.id), Some(1));
    assert!(!backlog.is_more);

    publisher.accept();
    publisher.wait_for(12).await;
    healthy(&relay.health).await;
    let backlog = relay
        .backlog(|backlog| backlog.pending == 0 && backlog.watermark_lag == 0)
        .await;
    assert_eq!(backlog.oldest, None);
    relay.stop().await;
}

async fn an_old_row_degrades_the_health_until_it_is_out<DB: TestDatabase>(fixture: Fixture<DB>) {
    // By the database's clock, as whoever writes without a time of his own.
    fixture.run_sql(&insert_events("a", 1..=2)).await;
    let long_ago = if DB::NOTIFIES {
        "occurred_at - interval '1 hour'"
    } else {
        "occurred_at - 3600000"
    };
    fixture
        .run_sql(&format!(
            "UPDATE outbox_message SET occurred_at = {long_ago} WHERE id = 1"
        ))
        .await;
    let publisher = RecordingPublisher::new();
    publisher.go_down();
    let minute = Duration::from_secs(60);
    let relay = RunningRelay::start_with(&fixture.outbox, &publisher, watchful(u32::MAX, minute));
    let text = told(&relay.health, "above its ceiling").await;
    assert!(
        text.contains("the oldest pending row, 1, occurred 36"),
        "{text}"
    );
    assert!(text.contains("(ceiling: 60 s)"), "{text}");
    assert!(!text.contains("rows are pending"), "{text}");

    publisher.accept();
    publisher.wait_for(2).await;
    healthy(&relay.health).await;
    relay.stop().await;
}

async fn what_is_parked_is_not_pending<DB: TestDatabase>(fixture: Fixture<DB>) {
    let publisher = RecordingPublisher::new();
    publisher.judge(|message| match message.metadata.ordering_key().1 {
        key if key == "poison" => Err(PublishError::permanent("never")),
        _ => Ok(()),
    });
    fixture.run_sql(&insert_events("poison", 1..=3)).await;
    fixture.run_sql(&insert_events("a", 1..=3)).await;
    let relay = RunningRelay::start_with(&fixture.outbox, &publisher, watchful(1, LONG));
    publisher.wait_for(3).await;
    relay
        .backlog(|backlog| backlog.pending == 0 && backlog.watermark_lag == 0)
        .await;
    let parked = fixture.number("SELECT count(*) FROM outbox_parked").await;
    assert_eq!(parked, 3);
    let health = relay.health.get().to_string();
    assert!(!health.contains("ceiling"), "{health}");
    relay.stop().await;
}

async fn look<DB: TestDatabase>(fixture: &Fixture<DB>, most: u32) -> Backlog {
    let queries = DB::backlog_queries(&Default::default());
    let mut connection = fixture.pool.acquire().await.unwrap();
    <DB as BacklogStore>::backlog(&mut connection, &queries, most)
        .await
        .unwrap()
}

async fn a_look_goes_only_as_far_as_it_is_told<DB: TestDatabase>(fixture: Fixture<DB>) {
    let empty = look(&fixture, 10).await;
    assert_eq!((empty.pending, empty.is_more), (0, false));
    assert_eq!((empty.oldest, empty.watermark_lag), (None, 0));

    fixture.run_sql(&insert_events("a", 1..=20)).await;
    let bounded = look(&fixture, 5).await;
    assert_eq!((bounded.pending, bounded.is_more), (5, true));
    assert_eq!(bounded.watermark_lag, 20);
    let all = look(&fixture, 21).await;
    assert_eq!((all.pending, all.is_more), (20, false));

    // Half of the rows say their shard; those of the others count until every shard is past them.
    let shard = "(SELECT max(shard) FROM outbox_message)";
    fixture
        .run_sql(&format!(
            "UPDATE outbox_shard SET position = 10 WHERE shard = {shard}"
        ))
        .await;
    let some = look(&fixture, 21).await;
    assert_eq!((some.pending, some.watermark_lag), (15, 20));
    assert_eq!(some.oldest.map(|oldest| oldest.id), Some(1));
    fixture
        .run_sql("UPDATE outbox_shard SET position = 15")
        .await;
    let rest = look(&fixture, 21).await;
    assert_eq!((rest.pending, rest.watermark_lag), (5, 5));
    assert_eq!(rest.oldest.map(|oldest| oldest.id), Some(16));
    fixture
        .run_sql("DELETE FROM outbox_message; UPDATE outbox_shard SET position = 99")
        .await;
    assert_eq!(look(&fixture, 21).await, empty);
}

async fn a_relay_without_shards_looks_too<DB: TestDatabase>(fixture: Fixture<DB>) {
    // Nobody relays: another instance holds every shard and does nothing.
    let publisher = RecordingPublisher::new();
    publisher.go_down();
    let owner = RunningRelay::start_with(
        &fixture.outbox,
        &publisher,
        quick().lease(Duration::from_secs(60)),
    );
    fixture.run_sql(&insert_events("a", 1..=5)).await;
    let owned = "SELECT count(*) FROM outbox_shard WHERE owner IS NOT NULL";
    while fixture.number(owned).await < 64 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    owner.crash().await;
    let relay = RunningRelay::start_with(&fixture.outbox, &publisher, watchful(3, LONG));
    let text = told(&relay.health, "5 rows are pending (ceiling: 3)").await;
    assert!(text.contains("lags 5 ids behind"), "{text}");
    assert_eq!(fixture.number(owned).await, 64);
    relay.stop().await;
}

#[cfg(feature = "postgres")]
#[tokio::test]
async fn an_open_transaction_is_named_as_what_holds_the_positions_back() {
    let Some(fixture) = outbox_tests::postgres().await else {
        return;
    };
    let mut open = fixture.pool.begin().await.unwrap();
    sqlx::query(sqlx::AssertSqlSafe(insert_events("late", [1])))
        .execute(&mut *open)
        .await
        .unwrap();
    fixture.run_sql(&insert_events("a", 1..=5)).await;
    let publisher = RecordingPublisher::new();
    let relay = RunningRelay::start_with(&fixture.outbox, &publisher, watchful(3, LONG));
    publisher.wait_for(5).await;
    let text = told(&relay.health, "open since row 1").await;
    assert!(text.contains("5 rows are pending (ceiling: 3)"), "{text}");
    open.commit().await.unwrap();
    publisher.wait_for(6).await;
    healthy(&relay.health).await;
    relay.stop().await;
}
