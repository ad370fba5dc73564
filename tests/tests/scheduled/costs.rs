//! Statements that scheduling costs on PostgreSQL.

use std::time::Duration;

use outbox_runtime::prelude::*;
use outbox_runtime::relay::RelayOptions;
use outbox_tests::bank::{Account, BellRang, Opened, SCHEMA};
use outbox_tests::{RecordingPublisher, RoundTrips, RunningRelay, quick};

const HOUR: Duration = Duration::from_secs(3600);

/// A connection that goes back to the pool is pinged, in its own time.
async fn start_counting(trips: &RoundTrips) {
    drop(trips.pool.acquire().await.unwrap());
    tokio::time::sleep(Duration::from_millis(50)).await;
    trips.take();
}

#[tokio::test]
async fn scheduling_is_part_of_the_one_statement() {
    let Some(fixture) = outbox_tests::postgres().await else {
        return;
    };
    fixture.run_sql(SCHEMA).await;
    let trips = RoundTrips::count(&fixture).await;
    // A notice would be a trip too, some time after its commit.
    let builder = Outbox::builder("test", trips.pool.clone()).notify(false);
    let outbox = builder.build().unwrap();
    // A statement is prepared at its first use, so each shape runs once before it is counted.
    for name in ["a", "b"] {
        start_counting(&trips).await;
        let mut uow = outbox.begin(MessageContext::new()).await.unwrap();
        uow.add(&mut Account::open(name)).await.unwrap();
        uow.raise(BellRang { times: 1 }).unwrap();
        uow.raise_after(BellRang { times: 2 }, HOUR).unwrap();
        uow.commit().await.unwrap();
    }
    assert_eq!(
        trips.take(),
        1,
        "an aggregate, its event and a scheduled one"
    );

    for _ in 0..2 {
        start_counting(&trips).await;
        let mut uow = outbox.begin(MessageContext::new()).await.unwrap();
        uow.raise_after(BellRang { times: 2 }, HOUR).unwrap();
        uow.raise_after(BellRang { times: 3 }, HOUR).unwrap();
        uow.commit().await.unwrap();
    }
    assert_eq!(trips.take(), 1, "scheduled events alone");

    for _ in 0..2 {
        start_counting(&trips).await;
        let mut uow = outbox.begin(MessageContext::new()).await.unwrap();
        uow.cancel_scheduled::<Opened>("x").await.unwrap();
        uow.commit().await.unwrap();
    }
    assert_eq!(trips.take(), 3, "BEGIN, DELETE, COMMIT");
}

#[tokio::test]
async fn a_relay_asks_for_scheduled_events_only_when_there_may_be_news() {
    let Some(fixture) = outbox_tests::postgres().await else {
        return;
    };
    let pool = sqlx::PgPool::connect(&fixture.url).await.unwrap();
    let outbox = Outbox::new("test", pool.clone());
    let publisher = RecordingPublisher::new();
    let never = RelayOptions::lease(quick(), HOUR).poll_interval(HOUR, HOUR);
    let relay = RunningRelay::start_with(&outbox, &publisher, never);
    for times in 1..=50 {
        let mut uow = outbox.begin(MessageContext::new()).await.unwrap();
        uow.raise(BellRang { times }).unwrap();
        uow.commit().await.unwrap();
        publisher.wait_for(times as usize).await;
    }
    // The time of the next one is known, so nothing is asked until it has come.
    let mut uow = outbox.begin(MessageContext::new()).await.unwrap();
    uow.raise_after(BellRang { times: 51 }, Duration::from_millis(100))
        .unwrap();
    uow.commit().await.unwrap();
    publisher.wait_for(51).await;
    relay.stop().await;
    // A server process reports what it did when it ends.
    pool.close().await;
    let looks = "SELECT coalesce(seq_scan, 0) + coalesce(idx_scan, 0) FROM pg_stat_user_tables
        WHERE relname = 'outbox_scheduled'";
    let reported = async {
        loop {
            match fixture.number(looks).await {
                0 => tokio::time::sleep(Duration::from_millis(50)).await,
                looks => return looks,
            }
        }
    };
    let looks = tokio::time::timeout(Duration::from_secs(30), reported)
        .await
        .expect("the statistics arrive");
    // The first look, one at the signal, the move with its two, and the last; some round up early.
    assert!(looks <= 10, "{looks} looks for 50 passes");
}
