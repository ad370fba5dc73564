use std::sync::Arc;
use std::time::Duration;

use sqlx::AssertSqlSafe;
use sqlx::postgres::{PgConnection, Postgres};

use crate::store::{Backlog, BacklogStore, Names, OldestPending};

/// The SQL that looks at the backlog of one outbox on PostgreSQL.
#[derive(Debug)]
pub struct BacklogQueries {
    look: Arc<str>,
}

/// Count, whether there may be more, the oldest row's id and age in seconds, and the lag.
type Figures = (i64, bool, Option<i64>, Option<f64>, Option<i64>);

impl BacklogStore for Postgres {
    type BacklogQueries = BacklogQueries;

    fn backlog_queries(names: &Names) -> BacklogQueries {
        BacklogQueries {
            look: Arc::from(names.render(include_str!("sql/backlog.sql"))),
        }
    }

    async fn backlog(
        connection: &mut PgConnection,
        queries: &BacklogQueries,
        most: u32,
    ) -> Result<Backlog, sqlx::Error> {
        let (pending, is_more, oldest, age, lag): Figures =
            sqlx::query_as(AssertSqlSafe(Arc::clone(&queries.look)))
                .bind(i64::from(most))
                .fetch_one(connection)
                .await?;
        Ok(Backlog {
            pending: pending.unsigned_abs(),
            is_more,
            oldest: oldest.map(|id| OldestPending {
                id,
                age: Duration::try_from_secs_f64(age.unwrap_or_default()).unwrap_or_default(),
            }),
            watermark_lag: lag.unwrap_or_default().unsigned_abs(),
        })
    }
}
