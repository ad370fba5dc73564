use std::sync::atomic::Ordering;
use std::time::Duration;

use outbox_runtime::{MessageContext, Outbox};
use sqlx::Postgres;
use sqlx::postgres::PgPoolOptions;
use tokio::task::JoinSet;

use crate::dice::dice;
use crate::shop::{self, LOAD};
use crate::writers::{Load, deposit, name, open_accounts};

/// Whatever isolation the database gives by default.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn stricter_isolation_costs_attempts_and_no_effect() {
    for level in ["repeatable read", "serializable"] {
        let Some(fixture) = outbox_tests::postgres().await else {
            return;
        };
        let mut dice = dice();
        let load = Load {
            events: 600,
            accounts: 15,
            open_for: Duration::from_millis(100),
            may_fail: true,
            ..LOAD
        };
        let set = "DO $$ BEGIN EXECUTE format(\
             'ALTER DATABASE %I SET default_transaction_isolation = %L', current_database(), 'LEVEL'); END $$";
        fixture.run_sql(&set.replace("LEVEL", level)).await;
        let options = PgPoolOptions::new().max_connections(20);
        let pool = options.connect(&fixture.url).await.unwrap();
        let outbox = Outbox::new("test", pool);
        open_accounts(&outbox, load.accounts).await;
        shop::create_tables(&outbox).await;
        let app = shop::open(&outbox).await;
        deposits_are_repeated(&outbox).await;
        let tally = load.run(&outbox, &mut dice).await;
        shop::all_have_effect(&fixture).await;
        app.shutdown().await.unwrap();
        shop::books_balance(&fixture).await;
        println!(
            "{level}: {} failed, {} conflicts",
            tally.failed.load(Ordering::SeqCst),
            tally.conflicts.load(Ordering::SeqCst)
        );
    }
}

/// The database finds a conflict before the version check does, and the operation is repeated
/// all the same.
async fn deposits_are_repeated(outbox: &Outbox<Postgres>) {
    let mut tasks = JoinSet::new();
    for _ in 0..2 {
        let outbox = outbox.clone();
        tasks.spawn(async move {
            for _ in 0..30 {
                let once = || async {
                    let mut uow = outbox.begin(MessageContext::new()).await?;
                    // In one transaction, so that its snapshot is older than the other's commit.
                    uow.connection().await?;
                    deposit(&mut uow, &name(0), 1).await?;
                    uow.commit().await
                };
                outbox.retry(once).await.unwrap();
            }
        });
    }
    while tasks.join_next().await.transpose().unwrap().is_some() {}
}
