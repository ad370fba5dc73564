use std::sync::Arc;

use sqlx::AssertSqlSafe;
use sqlx::sqlite::{Sqlite, SqliteConnection};

use super::Queries;
use crate::store::{Backend, Moved, ScheduleStore};

const NOW: &str = include_str!("sql/scheduled_now.sql");

impl ScheduleStore for Sqlite {
    async fn cancel_scheduled(
        connection: &mut SqliteConnection,
        queries: &Queries,
        event_type: &str,
        business_key: &str,
    ) -> Result<bool, sqlx::Error> {
        Self::check_transaction(&mut *connection).await?;
        let done = sqlx::query(AssertSqlSafe(Arc::clone(&queries.scheduled_cancel)))
            .bind(event_type)
            .bind(business_key)
            .execute(connection)
            .await?;
        Ok(done.rows_affected() > 0)
    }

    async fn next_due(
        connection: &mut SqliteConnection,
        queries: &Queries,
    ) -> Result<Option<i64>, sqlx::Error> {
        sqlx::query_scalar(AssertSqlSafe(Arc::clone(&queries.scheduled_next)))
            .fetch_one(connection)
            .await
    }

    async fn move_due(
        connection: &mut SqliteConnection,
        queries: &Queries,
        most: i64,
    ) -> Result<Moved, sqlx::Error> {
        // Both statements must mean the same rows, so the clock is read once.
        let now: i64 = sqlx::query_scalar(NOW).fetch_one(&mut *connection).await?;
        let stored = sqlx::query(AssertSqlSafe(Arc::clone(&queries.scheduled_move)))
            .bind(now)
            .bind(most)
            .execute(&mut *connection)
            .await?;
        let taken = sqlx::query(AssertSqlSafe(Arc::clone(&queries.scheduled_moved)))
            .bind(now)
            .bind(most)
            .execute(&mut *connection)
            .await?;
        Ok(Moved {
            taken: taken.rows_affected(),
            stored: stored.rows_affected(),
        })
    }
}
