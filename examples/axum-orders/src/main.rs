//! Serves orders on 127.0.0.1:3000, with relay and consumers beside the web server, and what
//! operators ask for on 127.0.0.1:3001.

use axum_orders::{TABLES, operations, router};
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

    let metrics = operations::collect_metrics()?;
    let listener = TcpListener::bind("127.0.0.1:3000").await?;
    let for_operators = TcpListener::bind("127.0.0.1:3001").await?;
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
    let app = App::new(outbox.clone()).broker(InProcessBroker::new());
    let operations = operations::router(app.health(), metrics);
    let app = app.run_until(stop.clone().cancelled_owned());
    let server = axum::serve(listener, router(outbox))
        .with_graceful_shutdown(stop.clone().cancelled_owned());
    let operations =
        axum::serve(for_operators, operations).with_graceful_shutdown(stop.cancelled_owned());
    let (app, server, operations) =
        tokio::join!(app, async { server.await }, async { operations.await });
    // ANCHOR_END: both
    app?;
    server?;
    operations?;
    Ok(())
}
