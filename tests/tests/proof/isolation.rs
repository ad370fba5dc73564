use std::sync::atomic::Ordering;
use std::time::Duration;

use outbox_runtime::Outbox;
use sqlx::postgres::PgPoolOptions;

use crate::dice::dice;
use crate::shop::{self, LOAD};
use crate::writers::{Load, open_accounts};

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
