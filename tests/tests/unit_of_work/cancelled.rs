//! What a caller that goes away leaves behind on PostgreSQL.

use std::time::Duration;

use outbox_runtime::prelude::*;
use outbox_tests::bank::BellRang;
use sqlx::postgres::PgPoolOptions;
use tokio::time::timeout;

/// A BEGIN that is cancelled leaves no transaction open on its connection: the next commit by one
/// statement would land in it, and be told as done before it is.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cancelled_begin_leaves_no_transaction_to_the_next_commit() {
    let Some(fixture) = outbox_tests::postgres().await else {
        return;
    };
    let options = PgPoolOptions::new().max_connections(1);
    let pool = options.connect(&fixture.url).await.unwrap();
    let outbox = Outbox::builder("test", pool).notify(false).build().unwrap();
    let mut cancelled = 0;
    for round in 1..=300 {
        let mut uow = outbox.begin(MessageContext::new()).await.unwrap();
        let patience = Duration::from_micros(fastrand::u64(1..600));
        cancelled += i32::from(timeout(patience, uow.connection()).await.is_err());
        drop(uow);
        let mut uow = outbox.begin(MessageContext::new()).await.unwrap();
        uow.raise(BellRang { times: 1 }).unwrap();
        uow.commit().await.unwrap();
        assert_eq!(fixture.events().await, round, "told as done, and not there");
    }
    assert!(cancelled > 0, "none was cancelled");
}
