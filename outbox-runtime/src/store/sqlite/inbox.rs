use std::sync::Arc;

use sqlx::{AssertSqlSafe, Sqlite};

use crate::store::inbox::CLAIMING;
use crate::store::{Claim, Claimed, Error, InboxStore, Names};

/// The inbox's SQL of one outbox on SQLite.
#[derive(Debug)]
pub struct InboxQueries {
    claim: Arc<str>,
    held: Arc<str>,
    pub(super) done: Arc<str>,
    pub(super) park: Arc<str>,
    pub(super) attempted: Arc<str>,
    pub(super) heads: Arc<str>,
    pub(super) take_out: Arc<str>,
    pub(super) failed_again: Arc<str>,
    pub(super) forget_attempts: Arc<str>,
    pub(super) trouble: Arc<str>,
}

impl InboxStore for Sqlite {
    type InboxQueries = InboxQueries;

    fn inbox_queries(names: &Names) -> InboxQueries {
        let render = |sql: &str| Arc::from(names.render(sql));
        InboxQueries {
            claim: render(include_str!("sql/inbox_claim.sql")),
            held: render(include_str!("sql/inbox_held.sql")),
            done: render(include_str!("sql/inbox_done.sql")),
            park: render(include_str!("sql/inbox_park.sql")),
            attempted: render(include_str!("sql/inbox_attempted.sql")),
            heads: render(include_str!("sql/inbox_heads.sql")),
            take_out: render(include_str!("sql/inbox_take_out.sql")),
            failed_again: render(include_str!("sql/inbox_failed_again.sql")),
            forget_attempts: render(include_str!("sql/inbox_forget_attempts.sql")),
            trouble: render(include_str!("sql/inbox_trouble.sql")),
        }
    }

    async fn claim(
        connection: &mut sqlx::SqliteConnection,
        queries: &InboxQueries,
        claim: Claim<'_>,
    ) -> Result<Claimed, Error> {
        let result = sqlx::query(AssertSqlSafe(Arc::clone(&queries.claim)))
            .bind(claim.consumer)
            .bind(claim.idempotency_key)
            .bind(claim.metadata.message_id.as_uuid())
            .bind(claim.metadata.event_type.as_str())
            .bind(claim.lane)
            .execute(&mut *connection)
            .await
            .map_err(Error::database(CLAIMING))?;
        if result.rows_affected() == 1 {
            return Ok(Claimed::First);
        }
        let is_held: bool = sqlx::query_scalar(AssertSqlSafe(Arc::clone(&queries.held)))
            .bind(claim.consumer)
            .bind(claim.lane)
            .fetch_one(connection)
            .await
            .map_err(Error::database(CLAIMING))?;
        Ok(if is_held {
            Claimed::Held
        } else {
            Claimed::Duplicate
        })
    }

    async fn claim_all(
        connection: &mut sqlx::SqliteConnection,
        queries: &InboxQueries,
        claims: &[Claim<'_>],
    ) -> Result<Vec<Claimed>, Error> {
        let mut claimed = Vec::with_capacity(claims.len());
        for &claim in claims {
            claimed.push(Self::claim(connection, queries, claim).await?);
        }
        Ok(claimed)
    }

    async fn is_handled(
        connection: &mut sqlx::SqliteConnection,
        queries: &InboxQueries,
        claim: Claim<'_>,
    ) -> Result<(bool, bool), Error> {
        let is_handled = sqlx::query_scalar(AssertSqlSafe(Arc::clone(&queries.done)))
            .bind(claim.consumer)
            .bind(claim.idempotency_key)
            .fetch_one(connection)
            .await
            .map_err(Error::database(CLAIMING))?;
        // Its transaction is the only one that writes.
        Ok((is_handled, true))
    }
}
