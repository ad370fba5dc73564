use std::sync::Arc;
use std::time::Duration;

use sqlx::AssertSqlSafe;
use sqlx::sqlite::{Sqlite, SqliteConnection};
use uuid::Uuid;

use super::relay::as_millis;
use crate::store::{Finished, Names, RetentionStore, Sweep, Swept};

const NOW: &str = include_str!("sql/scheduled_now.sql");

/// The SQL of retention of one outbox on SQLite.
#[derive(Debug)]
pub struct RetentionQueries {
    lease: Arc<str>,
    release: Arc<str>,
    outbox: Steps,
    journal: Steps,
    inbox: Steps,
    discarded: Steps,
    notes: Steps,
}

#[derive(Debug)]
struct Steps {
    see: Arc<str>,
    archive: Arc<str>,
    delete: Arc<str>,
}

impl RetentionStore for Sqlite {
    type RetentionQueries = RetentionQueries;

    fn retention_queries(names: &Names) -> RetentionQueries {
        let render = |sql: &str| Arc::from(names.render(sql));
        RetentionQueries {
            lease: render(include_str!("sql/retention_lease.sql")),
            release: render(include_str!("sql/retention_release.sql")),
            outbox: Steps {
                see: render(include_str!("sql/retention_see_outbox.sql")),
                archive: render(include_str!("sql/retention_archive_outbox.sql")),
                delete: render(include_str!("sql/retention_delete_outbox.sql")),
            },
            journal: Steps {
                see: render(include_str!("sql/retention_see_journal.sql")),
                archive: render(include_str!("sql/retention_archive_journal.sql")),
                delete: render(include_str!("sql/retention_delete_journal.sql")),
            },
            inbox: Steps {
                see: render(include_str!("sql/retention_see_inbox.sql")),
                archive: render(include_str!("sql/retention_archive_inbox.sql")),
                delete: render(include_str!("sql/retention_delete_inbox.sql")),
            },
            discarded: Steps {
                see: render(include_str!("sql/retention_see_discarded.sql")),
                archive: render(include_str!("sql/retention_archive_discarded.sql")),
                delete: render(include_str!("sql/retention_delete_discarded.sql")),
            },
            notes: Steps {
                see: render(include_str!("sql/retention_see_notes.sql")),
                archive: render(include_str!("sql/retention_archive_notes.sql")),
                delete: render(include_str!("sql/retention_delete_notes.sql")),
            },
        }
    }

    async fn lease_cleaner(
        connection: &mut SqliteConnection,
        queries: &RetentionQueries,
        instance: Uuid,
        lease: Duration,
    ) -> Result<bool, sqlx::Error> {
        let done = sqlx::query(AssertSqlSafe(Arc::clone(&queries.lease)))
            .bind(instance)
            .bind(as_millis(lease))
            .execute(connection)
            .await?;
        Ok(done.rows_affected() > 0)
    }

    async fn release_cleaner(
        connection: &mut SqliteConnection,
        queries: &RetentionQueries,
        instance: Uuid,
    ) -> Result<(), sqlx::Error> {
        sqlx::query(AssertSqlSafe(Arc::clone(&queries.release)))
            .bind(instance)
            .execute(connection)
            .await
            .map(drop)
    }

    async fn sweep(
        connection: &mut SqliteConnection,
        queries: &RetentionQueries,
        sweep: &Sweep,
    ) -> Result<Swept, sqlx::Error> {
        // All steps must mean the same rows, so the clock is read once.
        let now: i64 = sqlx::query_scalar(NOW).fetch_one(&mut *connection).await?;
        let before = now.saturating_sub(as_millis(sweep.age));
        match sweep.table {
            Finished::Outbox => sweep_log(connection, &queries.outbox, sweep, before).await,
            Finished::Journal => sweep_log(connection, &queries.journal, sweep, before).await,
            Finished::Inbox => sweep_inbox(connection, &queries.inbox, sweep, before).await,
            Finished::Discarded => sweep_log(connection, &queries.discarded, sweep, before).await,
            Finished::Notes => sweep_log(connection, &queries.notes, sweep, before).await,
        }
    }
}

async fn sweep_log(
    connection: &mut SqliteConnection,
    steps: &Steps,
    sweep: &Sweep,
    before: i64,
) -> Result<Swept, sqlx::Error> {
    let (up_to, seen): (Option<i64>, i64) = sqlx::query_as(AssertSqlSafe(Arc::clone(&steps.see)))
        .bind(sweep.after)
        .bind(sweep.floor)
        .bind(sweep.chunk)
        .fetch_one(&mut *connection)
        .await?;
    let up_to = up_to.unwrap_or(sweep.after);
    let mut removed = 0;
    for sql in sweep.steps(steps) {
        removed = sqlx::query(AssertSqlSafe(Arc::clone(sql)))
            .bind(before)
            .bind(sweep.after)
            .bind(up_to)
            .execute(&mut *connection)
            .await?
            .rows_affected();
    }
    Ok(Swept {
        up_to,
        removed,
        more: seen >= sweep.chunk && removed > 0,
    })
}

async fn sweep_inbox(
    connection: &mut SqliteConnection,
    steps: &Steps,
    sweep: &Sweep,
    before: i64,
) -> Result<Swept, sqlx::Error> {
    let before: Option<i64> = sqlx::query_scalar(AssertSqlSafe(Arc::clone(&steps.see)))
        .bind(before)
        .bind(sweep.floor)
        .fetch_one(&mut *connection)
        .await?;
    let mut removed = 0;
    for sql in sweep.steps(steps) {
        removed = sqlx::query(AssertSqlSafe(Arc::clone(sql)))
            .bind(before)
            .bind(sweep.chunk)
            .execute(&mut *connection)
            .await?
            .rows_affected();
    }
    Ok(Swept {
        up_to: 0,
        removed,
        more: i64::try_from(removed).is_ok_and(|removed| removed >= sweep.chunk),
    })
}

impl Sweep {
    /// What to run on the rows, in order.
    fn steps<'s>(&self, steps: &'s Steps) -> impl Iterator<Item = &'s Arc<str>> {
        let archive = self.archive.then_some(&steps.archive);
        archive.into_iter().chain([&steps.delete])
    }
}
