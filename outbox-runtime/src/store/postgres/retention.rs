use std::sync::Arc;
use std::time::Duration;

use sqlx::AssertSqlSafe;
use sqlx::postgres::{PgConnection, Postgres};
use uuid::Uuid;

use crate::store::{Finished, Names, RetentionStore, Sweep, Swept};

/// The SQL of retention of one outbox on PostgreSQL.
#[derive(Debug)]
pub struct RetentionQueries {
    lease: Arc<str>,
    release: Arc<str>,
    /// Without an archive, and with.
    outbox: [Arc<str>; 2],
    journal: [Arc<str>; 2],
    inbox: [Arc<str>; 2],
    discarded: [Arc<str>; 2],
    notes: [Arc<str>; 2],
}

impl RetentionStore for Postgres {
    type RetentionQueries = RetentionQueries;

    fn retention_queries(names: &Names) -> RetentionQueries {
        let render = |sql: &str| Arc::from(names.render(sql));
        RetentionQueries {
            lease: render(include_str!("sql/retention_lease.sql")),
            release: render(include_str!("sql/retention_release.sql")),
            outbox: [
                render(include_str!("sql/retention_delete_outbox.sql")),
                render(include_str!("sql/retention_archive_outbox.sql")),
            ],
            journal: [
                render(include_str!("sql/retention_delete_journal.sql")),
                render(include_str!("sql/retention_archive_journal.sql")),
            ],
            inbox: [
                render(include_str!("sql/retention_delete_inbox.sql")),
                render(include_str!("sql/retention_archive_inbox.sql")),
            ],
            discarded: [
                render(include_str!("sql/retention_delete_discarded.sql")),
                render(include_str!("sql/retention_archive_discarded.sql")),
            ],
            notes: [
                render(include_str!("sql/retention_delete_notes.sql")),
                render(include_str!("sql/retention_archive_notes.sql")),
            ],
        }
    }

    async fn lease_cleaner(
        connection: &mut PgConnection,
        queries: &RetentionQueries,
        instance: Uuid,
        lease: Duration,
    ) -> Result<bool, sqlx::Error> {
        let done = sqlx::query(AssertSqlSafe(Arc::clone(&queries.lease)))
            .bind(instance)
            .bind(lease.as_secs_f64())
            .execute(connection)
            .await?;
        Ok(done.rows_affected() > 0)
    }

    async fn release_cleaner(
        connection: &mut PgConnection,
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
        connection: &mut PgConnection,
        queries: &RetentionQueries,
        sweep: &Sweep,
    ) -> Result<Swept, sqlx::Error> {
        let [delete, archive] = match sweep.table {
            Finished::Outbox => &queries.outbox,
            Finished::Journal => &queries.journal,
            Finished::Inbox => &queries.inbox,
            Finished::Discarded => &queries.discarded,
            Finished::Notes => &queries.notes,
        };
        let sql = if sweep.archive { archive } else { delete };
        if sweep.table == Finished::Inbox {
            let removed: i64 = sqlx::query_scalar(AssertSqlSafe(Arc::clone(sql)))
                .bind(sweep.age.as_secs_f64())
                .bind(sweep.floor)
                .bind(sweep.chunk)
                .fetch_one(connection)
                .await?;
            return Ok(Swept {
                up_to: 0,
                removed: removed.unsigned_abs(),
                more: removed >= sweep.chunk,
            });
        }
        let (up_to, seen, removed): (Option<i64>, i64, i64) =
            sqlx::query_as(AssertSqlSafe(Arc::clone(sql)))
                .bind(sweep.age.as_secs_f64())
                .bind(sweep.after)
                .bind(sweep.floor)
                .bind(sweep.chunk)
                .fetch_one(connection)
                .await?;
        Ok(Swept {
            up_to: up_to.unwrap_or(sweep.after),
            removed: removed.unsigned_abs(),
            more: seen >= sweep.chunk && removed > 0,
        })
    }
}
