//! How soon a relay notices a commit, and what it does when connections break.
#![cfg(feature = "postgres")]
#![allow(missing_docs, clippy::unwrap_used, clippy::panic)]

use std::time::{Duration, Instant};

use outbox_runtime::Outbox;
use outbox_runtime::relay::RelayOptions;
use outbox_tests::{
    Fixture, RecordingPublisher, RunningRelay, TestDatabase, insert_events, on_both_databases,
    postgres, quick,
};
use sqlx::PgPool;
use sqlx::postgres::PgPoolOptions;

on_both_databases!(a_commit_in_the_same_process_wakes_the_relay);

/// Polls so rarely that only a signal can be the reason for what a test sees.
fn asleep() -> RelayOptions {
    let never = Duration::from_secs(3600);
    quick()
        .lease(Duration::from_secs(60))
        .poll_interval(never, never)
}

/// Publishes one event, so that the relay has read the log and waits.
async fn settle_in<DB: TestDatabase>(fixture: &Fixture<DB>, publisher: &RecordingPublisher) {
    fixture.run_sql(&insert_events("first", [1])).await;
    fixture.outbox.wake();
    publisher.wait_for(1).await;
}

async fn a_commit_in_the_same_process_wakes_the_relay<DB: TestDatabase>(fixture: Fixture<DB>) {
    let publisher = RecordingPublisher::new();
    let relay = RunningRelay::start_with(&fixture.outbox, &publisher, asleep());
    settle_in(&fixture, &publisher).await;
    for sequence in 1..=20 {
        fixture.run_sql(&insert_events("a", [sequence])).await;
        fixture.outbox.wake();
        publisher
            .wait_for(1 + usize::try_from(sequence).unwrap())
            .await;
    }
    relay.stop().await;
}

#[tokio::test]
async fn a_commit_in_another_process_wakes_the_relay() {
    let Some(fixture) = postgres().await else {
        return;
    };
    let publisher = RecordingPublisher::new();
    let relay = RunningRelay::start_with(&fixture.outbox, &publisher, asleep());
    settle_in(&fixture, &publisher).await;
    // Shares nothing with the relay's outbox but the database.
    let elsewhere = Outbox::new("other", PgPool::connect(&fixture.url).await.unwrap());
    for sequence in 1..=20 {
        // Written before the listener is there, an event waits for the next notice.
        fixture.run_sql(&insert_events("a", [sequence])).await;
        while publisher.distinct() < 1 + usize::try_from(sequence).unwrap() {
            elsewhere.wake();
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
    relay.stop().await;
}

#[tokio::test]
async fn an_outbox_that_does_not_notify_is_polled() {
    let Some(fixture) = postgres().await else {
        return;
    };
    let publisher = RecordingPublisher::new();
    let relay = RunningRelay::start(&fixture.outbox, &publisher);
    let pool = PgPool::connect(&fixture.url).await.unwrap();
    let silent = Outbox::builder("other", pool)
        .notify(false)
        .build()
        .unwrap();
    fixture.run_sql(&insert_events("a", [1])).await;
    silent.wake();
    publisher.wait_for(1).await;
    relay.stop().await;
}

#[tokio::test]
async fn broken_connections_are_made_anew_and_lose_nothing() {
    let Some(fixture) = postgres().await else {
        return;
    };
    let publisher = RecordingPublisher::new();
    let relay = RunningRelay::start(&fixture.outbox, &publisher);
    let outside = PgPool::connect(&fixture.url).await.unwrap();
    let break_all = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
        WHERE datname = current_database() AND pid <> pg_backend_pid()";
    for sequence in 1..=10 {
        sqlx::query(sqlx::AssertSqlSafe(insert_events("a", [sequence])))
            .execute(&outside)
            .await
            .unwrap();
        if sequence % 2 == 0 {
            sqlx::query(break_all).execute(&outside).await.unwrap();
        }
    }
    publisher.wait_for(10).await;
    // The listener has come back too.
    relay.health.wait_for(|health| health.is_healthy()).await;
    relay.stop().await;
    publisher.assert_complete(1, 10);
}

/// Events close to each other, and whatever connection read last is cut again and again.
#[tokio::test]
async fn a_reader_that_is_cut_again_and_again_skips_nothing() {
    let Some(fixture) = postgres().await else {
        return;
    };
    let publisher = RecordingPublisher::new();
    let relay = RunningRelay::start(&fixture.outbox, &publisher);
    let outside = PgPool::connect(&fixture.url).await.unwrap();
    let cut_readers = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
        WHERE datname = current_database() AND pid <> pg_backend_pid()
            AND query LIKE '%ORDER BY message.id%'";
    let mut cut = 0_i64;
    for sequence in 1..=200 {
        sqlx::query(sqlx::AssertSqlSafe(insert_events("a", [sequence])))
            .execute(&outside)
            .await
            .unwrap();
        fixture.outbox.wake();
        if sequence % 10 == 0 {
            publisher
                .wait_for(usize::try_from(sequence).unwrap() - 5)
                .await;
            let more: i64 = sqlx::query_scalar(cut_readers)
                .fetch_one(&outside)
                .await
                .unwrap();
            cut += more;
        }
    }
    publisher.wait_for(200).await;
    relay.health.wait_for(|health| health.is_healthy()).await;
    relay.stop().await;
    publisher.assert_complete(1, 200);
    assert!(cut > 0, "no connection was cut");
}

/// The relay keeps no connection that the service needs, even where there is but one.
#[tokio::test]
async fn a_small_pool_serves_the_relay_and_the_service() {
    for connections in [1, 2] {
        let Some(fixture) = postgres().await else {
            return;
        };
        let pool = PgPoolOptions::new()
            .max_connections(connections)
            .acquire_timeout(Duration::from_secs(10))
            .connect(&fixture.url)
            .await
            .unwrap();
        let outbox = Outbox::new("small", pool.clone());
        let publisher = RecordingPublisher::new();
        let relay = RunningRelay::start(&outbox, &publisher);
        let commits = ["a", "b", "c"].map(|name| {
            let (pool, outbox) = (pool.clone(), outbox.clone());
            tokio::spawn(async move {
                for sequence in 1..=100 {
                    sqlx::query(sqlx::AssertSqlSafe(insert_events(name, [sequence])))
                        .execute(&pool)
                        .await
                        .unwrap();
                    outbox.wake();
                }
            })
        });
        for commits in commits {
            commits.await.unwrap();
        }
        publisher.wait_for(300).await;
        relay.stop().await;
        publisher.assert_complete(3, 100);
        pool.close().await;
    }
}

/// A service may hold all connections but one for long: the relay gets on with the one that is left.
#[tokio::test]
async fn a_relay_needs_one_connection_of_the_pool() {
    let Some(fixture) = postgres().await else {
        return;
    };
    let options = PgPoolOptions::new().max_connections(2);
    let pool = options.connect(&fixture.url).await.unwrap();
    let builder = Outbox::builder("small", pool.clone()).notify(false);
    let outbox = builder.build().unwrap();
    let publisher = RecordingPublisher::new();
    // Each of its statements may take a third of that, the wait for a connection included; and it
    // looks for shards far more often than it reads.
    let options = asleep().lease(Duration::from_secs(3));
    let relay = RunningRelay::start_with(&outbox, &publisher, options);
    for sequence in 1..=3 {
        fixture.run_sql(&insert_events("a", [sequence])).await;
        outbox.wake();
        publisher.wait_for(usize::try_from(sequence).unwrap()).await;
        let held = pool.acquire().await.unwrap();
        let until = Instant::now() + Duration::from_secs(2);
        while Instant::now() < until {
            let health = relay.health.get();
            assert!(health.is_healthy(), "{health:?}");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        drop(held);
    }
    relay.stop().await;
    publisher.assert_complete(1, 3);
}

#[tokio::test]
async fn a_schema_and_a_prefix_of_its_own_are_listened_to_alone() {
    let Some(fixture) = postgres().await else {
        return;
    };
    fixture.run_sql("CREATE SCHEMA shop").await;
    let builder = Outbox::builder("shop", fixture.pool.clone())
        .schema("shop")
        .prefix("b_");
    let outbox = builder.build().unwrap();
    outbox.migrate().await.unwrap();
    let publisher = RecordingPublisher::new();
    let relay = RunningRelay::start_with(&outbox, &publisher, asleep());
    let insert = |sequence| {
        insert_events("a", [sequence]).replace("outbox_message", "shop.b_outbox_message")
    };
    fixture.run_sql(&insert(1)).await;
    outbox.wake();
    publisher.wait_for(1).await;
    fixture.run_sql(&insert_events("other", 1..=3)).await;
    fixture.outbox.wake();
    fixture.run_sql(&insert(2)).await;
    outbox.wake();
    publisher.wait_for(2).await;
    relay.stop().await;
    publisher.assert_complete(1, 2);
}
