use anyhow::Result;
use sqlx::postgres::PgPool;

use crate::postgres::script;
use crate::sections::{fill, start_anew};

/// A backlog that is kept aside while relays start, and that they find all at once.
///
/// It is a table under another name. A relay that runs reads the names anew when they change, so
/// the log that was empty is full after one short transaction, without the load that writing the
/// rows would be.
pub(crate) struct Backlog {
    pool: PgPool,
    rows: i64,
}

impl Backlog {
    /// Fills in so many rows, on an outbox whose tables are there.
    pub(crate) async fn of(pool: PgPool, rows: i64) -> Result<Self> {
        fill(&pool, rows).await?;
        let aside = "ALTER TABLE outbox_message RENAME TO outbox_backlog;
             CREATE TABLE outbox_message (LIKE outbox_backlog INCLUDING ALL)";
        script(&pool, aside).await?;
        Ok(Self { pool, rows })
    }

    pub(crate) const fn rows(&self) -> i64 {
        self.rows
    }

    /// Has relays begin at the beginning of a log that is empty as yet. None may be running.
    pub(crate) async fn hide(&self) -> Result<()> {
        let is_shown: bool = sqlx::query_scalar("SELECT to_regclass('outbox_empty') IS NOT NULL")
            .fetch_one(&self.pool)
            .await?;
        if is_shown {
            let back = "ALTER TABLE outbox_message RENAME TO outbox_backlog;
                 ALTER TABLE outbox_empty RENAME TO outbox_message";
            script(&self.pool, back).await?;
        }
        start_anew(&self.pool).await
    }

    /// Has it appear to relays that run, and wakes them as a commit does.
    pub(crate) async fn show(&self) -> Result<()> {
        script(
            &self.pool,
            "BEGIN;
             ALTER TABLE outbox_message RENAME TO outbox_empty;
             ALTER TABLE outbox_backlog RENAME TO outbox_message;
             SELECT pg_notify('outbox_' || 'outbox_empty'::regclass::oid::text, '');
             COMMIT",
        )
        .await
    }
}
