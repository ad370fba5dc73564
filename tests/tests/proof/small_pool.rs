use std::time::Duration;

use outbox_runtime::Outbox;
use outbox_tests::Fixture;
use sqlx::pool::PoolOptions;

use crate::dice::dice;
use crate::shop::{self, LOAD, ShopDb};
use crate::writers::{Load, open_accounts};

outbox_tests::on_both_databases!(one_connection_is_enough_for_all);

/// Writers, relay and handlers wait for each other, and none for ever.
async fn one_connection_is_enough_for_all<DB: ShopDb>(fixture: Fixture<DB>) {
    let mut dice = dice();
    let load = Load {
        events: 300,
        open_for: Duration::from_millis(20),
        ..LOAD
    };
    let pool = PoolOptions::new()
        .max_connections(1)
        .acquire_timeout(Duration::from_secs(60))
        .connect_with((*fixture.pool.connect_options()).clone())
        .await
        .unwrap();
    let outbox = Outbox::<DB>::new("test", pool);
    open_accounts(&outbox, load.accounts).await;
    shop::create_tables(&outbox).await;
    let app = shop::open(&outbox).await;
    let writing = tokio::time::timeout(Duration::from_secs(120), load.run(&outbox, &mut dice));
    writing.await.expect("a writer waits for ever");
    shop::all_have_effect(&fixture).await;
    app.shutdown().await.unwrap();
    shop::books_balance(&fixture).await;
}
