use std::sync::atomic::Ordering;
use std::time::Duration;

use outbox_tests::Fixture;
use sqlx::postgres::PgConnectOptions;
use sqlx::{ConnectOptions, Postgres};

use crate::dice::dice;
use crate::shop::{self, LOAD};
use crate::writers::{Load, open_accounts};

/// Ends all connections of the fixture's database.
async fn cut(server: &mut sqlx::PgConnection, database: &str) -> i64 {
    sqlx::query_scalar(
        "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE datname = $1",
    )
    .bind(database)
    .fetch_one(server)
    .await
    .unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn connections_that_are_cut_at_random_lose_and_repeat_nothing() {
    let Some(fixture) = outbox_tests::postgres().await else {
        return;
    };
    let mut dice = dice();
    let load = Load {
        events: 4_000,
        writers: 8,
        wait: 20_000,
        may_fail: true,
        ..LOAD
    };
    open_accounts(&fixture.outbox, load.accounts).await;
    shop::create_tables(&fixture.outbox).await;
    // Neither the app nor a writer is ever started again.
    let app = shop::open(&fixture.outbox).await;
    let mut writing = {
        let (outbox, mut dice) = (fixture.outbox.clone(), dice.fork());
        tokio::spawn(async move { load.run(&outbox, &mut dice).await })
    };
    let (mut server, database) = beside(&fixture).await;
    let mut cuts = 0;
    let tally = loop {
        let pause = Duration::from_millis(dice.u64(50..500));
        tokio::select! {
            tally = &mut writing => break tally.unwrap(),
            () = tokio::time::sleep(pause) => cuts += cut(&mut server, &database).await,
        }
    };
    shop::all_have_effect(&fixture).await;
    shop::books_balance(&fixture).await;
    assert!(cuts > 0 && tally.failed.load(Ordering::SeqCst) > 0);
    let health = app.health();
    let healthy = health.wait_for(|health| health.is_healthy());
    let in_time = tokio::time::timeout(Duration::from_secs(60), healthy).await;
    assert!(in_time.is_ok(), "{:?}", health.get());
    app.shutdown().await.unwrap();
    println!("{tally:?}, {cuts} connections were cut");
}

/// A connection to the same server that lives through the cuts, and the fixture's database.
async fn beside(fixture: &Fixture<Postgres>) -> (sqlx::PgConnection, String) {
    let options: PgConnectOptions = fixture.url.parse().unwrap();
    let database = options.get_database().unwrap().to_owned();
    let server = options.database("postgres").connect().await.unwrap();
    (server, database)
}
