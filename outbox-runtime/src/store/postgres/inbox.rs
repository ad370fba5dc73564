use std::sync::Arc;

use sqlx::{AssertSqlSafe, Postgres, Row};

use crate::store::{Claim, Claimed, Error, InboxStore, Names};

/// The inbox's SQL of one outbox on PostgreSQL.
#[derive(Debug)]
pub struct InboxQueries {
    claim: Arc<str>,
    pub(super) park: Arc<str>,
    pub(super) heads: Arc<str>,
    pub(super) take_out: Arc<str>,
    pub(super) failed_again: Arc<str>,
    pub(super) trouble: Arc<str>,
}

impl InboxStore for Postgres {
    type InboxQueries = InboxQueries;

    fn inbox_queries(names: &Names) -> InboxQueries {
        let render = |sql: &str| Arc::from(names.render(sql));
        InboxQueries {
            claim: render(include_str!("sql/inbox_claim.sql")),
            park: render(include_str!("sql/inbox_park.sql")),
            heads: render(include_str!("sql/inbox_heads.sql")),
            take_out: render(include_str!("sql/inbox_take_out.sql")),
            failed_again: render(include_str!("sql/inbox_failed_again.sql")),
            trouble: render(include_str!("sql/inbox_trouble.sql")),
        }
    }

    async fn claim(
        connection: &mut sqlx::PgConnection,
        queries: &InboxQueries,
        claim: Claim<'_>,
    ) -> Result<Claimed, Error> {
        let doing = || Error::database("claiming a message in the inbox");
        let row = sqlx::query(AssertSqlSafe(Arc::clone(&queries.claim)))
            .bind(claim.consumer)
            .bind(claim.idempotency_key)
            .bind(claim.metadata.message_id.as_uuid())
            .bind(claim.metadata.event_type.as_str())
            .bind(claim.lane)
            .fetch_one(connection)
            .await
            .map_err(doing())?;
        let is_held: bool = row.try_get(0).map_err(doing())?;
        let is_first: bool = row.try_get(1).map_err(doing())?;
        Ok(match (is_held, is_first) {
            (true, _) => Claimed::Held,
            (false, true) => Claimed::First,
            (false, false) => Claimed::Duplicate,
        })
    }
}
