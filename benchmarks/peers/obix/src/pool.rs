//! Connections for the systems that are on sqlx 0.8.

use anyhow::Result;
use outbox_bench_harness::Database;
use sqlx08::PgPool;
use sqlx08::postgres::PgPoolOptions;

/// A pool that opens all of its connections, so that a run need not, and does not ask the server whether a
/// connection is well before every use, which would be one more round trip.
pub(crate) async fn pool(database: &Database, connections: u32) -> Result<PgPool> {
    Ok(PgPoolOptions::new()
        .min_connections(connections)
        .max_connections(connections)
        .test_before_acquire(false)
        .connect(&database.url())
        .await?)
}
