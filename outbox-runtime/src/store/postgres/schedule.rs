use std::sync::Arc;

use sqlx::AssertSqlSafe;
use sqlx::postgres::{PgConnection, Postgres};

use super::Queries;
use crate::store::{Moved, ScheduleStore};

impl ScheduleStore for Postgres {
    async fn cancel_scheduled(
        connection: &mut PgConnection,
        queries: &Queries,
        event_type: &str,
        business_key: &str,
    ) -> Result<bool, sqlx::Error> {
        let done = sqlx::query(AssertSqlSafe(Arc::clone(&queries.scheduled_cancel)))
            .bind(event_type)
            .bind(business_key)
            .execute(connection)
            .await?;
        Ok(done.rows_affected() > 0)
    }

    async fn next_due(
        connection: &mut PgConnection,
        queries: &Queries,
    ) -> Result<Option<i64>, sqlx::Error> {
        sqlx::query_scalar(AssertSqlSafe(Arc::clone(&queries.scheduled_next)))
            .fetch_one(connection)
            .await
    }

    async fn move_due(
        connection: &mut PgConnection,
        queries: &Queries,
        most: i64,
    ) -> Result<Moved, sqlx::Error> {
        let (taken, stored): (i64, i64) =
            sqlx::query_as(AssertSqlSafe(Arc::clone(&queries.scheduled_move)))
                .bind(most)
                .fetch_one(connection)
                .await?;
        Ok(Moved {
            taken: taken.unsigned_abs(),
            stored: stored.unsigned_abs(),
        })
    }
}
