//! What the relay promises on PostgreSQL, where the order of commits is not the order of ids.
#![cfg(feature = "postgres")]
#![allow(
    missing_docs,
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing
)]

use std::time::Duration;

use outbox_tests::{Fixture, RecordingPublisher, RunningRelay, insert_events, postgres, quick};
use sqlx::{AssertSqlSafe, Executor, PgPool, Postgres};

/// A random number below `n`, from the database's own generator.
fn below(seed: &mut u64, n: u64) -> u64 {
    *seed ^= *seed << 13;
    *seed ^= *seed >> 7;
    *seed ^= *seed << 17;
    *seed % n
}

async fn insert(connection: &mut sqlx::PgConnection, aggregate: &str, sequence: i64) {
    let sql = insert_events(aggregate, [sequence]);
    connection.execute(AssertSqlSafe(sql)).await.unwrap();
}

/// Waits until every shard has come to `position`.
async fn position_reaches(fixture: &Fixture<Postgres>, position: i64) {
    reaches(fixture, "SELECT min(position) FROM outbox_shard", position).await;
}

/// Waits until some shard has come to `position`.
async fn highest_reaches(fixture: &Fixture<Postgres>, position: i64) {
    reaches(fixture, "SELECT max(position) FROM outbox_shard", position).await;
}

async fn reaches(fixture: &Fixture<Postgres>, sql: &str, position: i64) {
    let reached = async {
        while fixture.number(sql).await < position {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    let in_time = tokio::time::timeout(Duration::from_secs(30), reached).await;
    let stored = fixture.number(sql).await;
    assert!(in_time.is_ok(), "{sql}: {stored}, not {position}");
}

#[tokio::test]
async fn a_lower_id_that_commits_later_is_relayed() {
    let Some(fixture) = postgres().await else {
        return;
    };
    let publisher = RecordingPublisher::new();
    let relay = RunningRelay::start(&fixture.outbox, &publisher);
    let mut slow = fixture.pool.begin().await.unwrap();
    insert(&mut slow, "slow", 1).await;
    for sequence in 1..=50 {
        fixture.run_sql(&insert_events("fast", [sequence])).await;
    }
    publisher.wait_for(50).await;
    tokio::time::sleep(Duration::from_millis(300)).await;
    let moved = fixture
        .number("SELECT max(position) FROM outbox_shard")
        .await;
    assert_eq!(moved, 0, "the position waits for the lower id");
    slow.commit().await.unwrap();
    publisher.wait_for(51).await;
    relay.stop().await;
    assert_eq!(publisher.taken().len(), 51);
    position_reaches(&fixture, 51).await;
}

#[tokio::test]
async fn a_crash_behind_an_open_transaction_loses_nothing() {
    let Some(fixture) = postgres().await else {
        return;
    };
    let publisher = RecordingPublisher::new();
    let options = || quick().lease(Duration::from_millis(300));
    let relay = RunningRelay::start_with(&fixture.outbox, &publisher, options());
    let mut slow = fixture.pool.begin().await.unwrap();
    insert(&mut slow, "slow", 1).await;
    fixture.run_sql(&insert_events("fast", 1..=50)).await;
    publisher.wait_for(50).await;
    relay.crash().await;
    slow.commit().await.unwrap();
    let relay = RunningRelay::start_with(&fixture.outbox, &publisher, options());
    publisher.wait_for(51).await;
    relay.stop().await;
    assert_eq!(publisher.sequences()["slow"], [1]);
}

#[tokio::test]
async fn a_rollback_leaves_a_gap_that_settles() {
    let Some(fixture) = postgres().await else {
        return;
    };
    let publisher = RecordingPublisher::new();
    let relay = RunningRelay::start(&fixture.outbox, &publisher);
    let mut open = fixture.pool.begin().await.unwrap();
    insert(&mut open, "never", 1).await;
    fixture.run_sql(&insert_events("a", [1])).await;
    publisher.wait_for(1).await;
    open.rollback().await.unwrap();
    // The next event shows that the gap no longer holds back anything.
    fixture.run_sql(&insert_events("a", [2])).await;
    publisher.wait_for(2).await;
    highest_reaches(&fixture, 3).await;
    relay.stop().await;
    position_reaches(&fixture, 3).await;
}

#[tokio::test]
async fn a_savepoint_that_rolls_back_frees_its_ids_at_the_latest_with_its_transaction() {
    let Some(fixture) = postgres().await else {
        return;
    };
    let publisher = RecordingPublisher::new();
    let relay = RunningRelay::start(&fixture.outbox, &publisher);
    let mut open = fixture.pool.begin().await.unwrap();
    open.execute("SAVEPOINT one").await.unwrap();
    insert(&mut open, "never", 1).await;
    open.execute("ROLLBACK TO one").await.unwrap();
    insert(&mut open, "a", 1).await;
    fixture.run_sql(&insert_events("b", [1])).await;
    publisher.wait_for(1).await;
    open.commit().await.unwrap();
    publisher.wait_for(2).await;
    highest_reaches(&fixture, 3).await;
    relay.stop().await;
    position_reaches(&fixture, 3).await;
}

#[tokio::test]
async fn a_long_transaction_on_other_tables_holds_back_nothing() {
    let Some(fixture) = postgres().await else {
        return;
    };
    fixture.run_sql("CREATE TABLE other (n bigint)").await;
    let mut batch = fixture.pool.begin().await.unwrap();
    batch.execute("INSERT INTO other VALUES (1)").await.unwrap();
    let publisher = RecordingPublisher::new();
    let relay = RunningRelay::start(&fixture.outbox, &publisher);
    fixture.run_sql(&insert_events("a", 1..=100)).await;
    publisher.wait_for(100).await;
    relay.stop().await;
    position_reaches(&fixture, 100).await;
    batch.rollback().await.unwrap();
}

#[tokio::test]
async fn many_gaps_beside_an_open_transaction_are_relayed_in_order() {
    let Some(fixture) = postgres().await else {
        return;
    };
    let publisher = RecordingPublisher::new();
    let relay = RunningRelay::start(&fixture.outbox, &publisher);
    let mut slow = fixture.pool.begin().await.unwrap();
    insert(&mut slow, "slow", 1).await;
    for sequence in 1..=300 {
        // Each second id is given out and rolled back.
        let mut failed = fixture.pool.begin().await.unwrap();
        insert(&mut failed, "never", 1).await;
        failed.rollback().await.unwrap();
        fixture.run_sql(&insert_events("fast", [sequence])).await;
    }
    publisher.wait_for(300).await;
    insert(&mut slow, "slow", 2).await;
    slow.commit().await.unwrap();
    // What follows on the slow one's aggregate comes after it.
    fixture.run_sql(&insert_events("slow", 3..=4)).await;
    fixture.run_sql(&insert_events("fast", 301..=302)).await;
    publisher.wait_for(306).await;
    highest_reaches(&fixture, 606).await;
    relay.stop().await;
    assert_eq!(publisher.sequences()["slow"], [1, 2, 3, 4]);
    assert_eq!(publisher.sequences()["fast"], (1..=302).collect::<Vec<_>>());
    assert_eq!(publisher.taken().len(), 306);
    position_reaches(&fixture, 606).await;
}

/// One writer's life: transactions on random aggregates, in the order of a row lock as a unit of
/// work has it, with waits before the commit and some rollbacks.
async fn write_at_random(pool: PgPool, mut seed: u64, transactions: u32) {
    for _ in 0..transactions {
        let mut transaction = pool.begin().await.unwrap();
        let aggregate = below(&mut seed, 40);
        let version: i64 = sqlx::query_scalar(
            "UPDATE versions SET version = version + 1 WHERE aggregate = $1 RETURNING version",
        )
        .bind(i64::try_from(aggregate).unwrap())
        .fetch_one(&mut *transaction)
        .await
        .unwrap();
        insert(&mut transaction, &format!("a{aggregate}"), version).await;
        tokio::time::sleep(Duration::from_millis(below(&mut seed, 15))).await;
        if below(&mut seed, 10) == 0 {
            transaction.rollback().await.unwrap();
        } else {
            transaction.commit().await.unwrap();
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn writers_that_race_and_relays_that_crash_lose_and_reorder_nothing() {
    let Some(fixture) = postgres().await else {
        return;
    };
    fixture
        .run_sql(
            "CREATE TABLE versions (aggregate bigint PRIMARY KEY, version bigint NOT NULL);
             INSERT INTO versions SELECT n, 0 FROM generate_series(0, 39) AS n",
        )
        .await;
    let publisher = RecordingPublisher::new();
    let options = || quick().lease(Duration::from_millis(500)).batch_size(25);
    let mut writers = tokio::task::JoinSet::new();
    for n in 1..=16_u64 {
        writers.spawn(write_at_random(fixture.pool.clone(), n * 0x9e37_79b9, 150));
    }
    // One that stays open for seconds and commits in the end.
    let mut slow = fixture.pool.begin().await.unwrap();
    insert(&mut slow, "slow", 1).await;
    let mut relays = vec![RunningRelay::start_with(
        &fixture.outbox,
        &publisher,
        options(),
    )];
    let mut seed = 7;
    for round in 0..8 {
        tokio::time::sleep(Duration::from_millis(100 + below(&mut seed, 200))).await;
        relays.push(RunningRelay::start_with(
            &fixture.outbox,
            &publisher,
            options(),
        ));
        if relays.len() > 2 {
            let leaving = relays.remove(0);
            if round % 3 == 0 {
                leaving.stop().await
            } else {
                leaving.crash().await
            }
        }
    }
    while writers.join_next().await.transpose().unwrap().is_some() {}
    slow.commit().await.unwrap();
    let events = usize::try_from(fixture.events().await).unwrap();
    assert!(events > 2000);
    publisher.wait_for(events).await;
    let last = fixture.number("SELECT max(id) FROM outbox_message").await;
    position_reaches(&fixture, last).await;
    for relay in relays {
        relay.stop().await;
    }
    assert_eq!(publisher.distinct(), events);
    for (aggregate, sequences) in publisher.sequences() {
        let complete: Vec<i64> = (1..=i64::try_from(sequences.len()).unwrap()).collect();
        assert_eq!(sequences, complete, "aggregate {aggregate}");
    }
}
