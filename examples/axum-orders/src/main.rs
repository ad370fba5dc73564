//! Serves orders on 127.0.0.1:3000, with relay and consumers beside the web server.

use axum_orders::{TABLES, router};
use outbox_runtime::prelude::*;
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePool};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let options = SqliteConnectOptions::new()
        .filename("axum-orders.db")
        .create_if_missing(true)
        .journal_mode(SqliteJournalMode::Wal);
    let pool = SqlitePool::connect_with(options).await?;
    sqlx::raw_sql(TABLES).execute(&pool).await?;
    let outbox = Outbox::new("axum-orders", pool);
    outbox.migrate().await?;

    let listener = TcpListener::bind("127.0.0.1:3000").await?;
    println!("serving on http://{}", listener.local_addr()?);

    let stop = CancellationToken::new();
    tokio::spawn({
        let stop = stop.clone();
        async move {
            let _ = tokio::signal::ctrl_c().await;
            stop.cancel();
        }
    });
    // ANCHOR: both
    let app = App::new(outbox.clone())
        .broker(InProcessBroker::new())
        .run_until(stop.clone().cancelled_owned());
    let server =
        axum::serve(listener, router(outbox)).with_graceful_shutdown(stop.cancelled_owned());
    let (app, server) = tokio::join!(app, async { server.await });
    // ANCHOR_END: both
    app?;
    server?;
    Ok(())
}
