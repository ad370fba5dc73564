use std::sync::Arc;

use sqlx::{AssertSqlSafe, Postgres};

use crate::store::inbox::CLAIMING;
use crate::store::{Claim, Claimed, Error, InboxStore, Names};

/// The inbox's SQL of one outbox on PostgreSQL.
#[derive(Debug)]
pub struct InboxQueries {
    claim: Arc<str>,
    claim_all: Arc<str>,
    unclaimed: Arc<str>,
    done: Arc<str>,
    pub(super) park: Arc<str>,
    pub(super) heads: Arc<str>,
    pub(super) take_out: Arc<str>,
    pub(super) failed_again: Arc<str>,
    pub(super) trouble: Arc<str>,
}

/// How often a message is claimed whose lane is held and free again in turn.
const CLAIMS: usize = 3;

impl InboxStore for Postgres {
    type InboxQueries = InboxQueries;

    fn inbox_queries(names: &Names) -> InboxQueries {
        let render = |sql: &str| Arc::from(names.render(sql));
        InboxQueries {
            claim: render(include_str!("sql/inbox_claim.sql")),
            claim_all: render(include_str!("sql/inbox_claim_all.sql")),
            unclaimed: render(include_str!("sql/inbox_unclaimed.sql")),
            done: render(include_str!("sql/inbox_done.sql")),
            park: render(include_str!("sql/inbox_park.sql")),
            heads: render(include_str!("sql/inbox_heads.sql")),
            take_out: render(include_str!("sql/inbox_take_out.sql")),
            failed_again: render(include_str!("sql/inbox_failed_again.sql")),
            trouble: render(include_str!("sql/inbox_trouble.sql")),
        }
    }

    /// Of the usual first delivery, one statement; what it was if nothing was written, a second one says.
    /// Between the two a lane can become free: only a row in the inbox makes a message a duplicate.
    async fn claim(
        connection: &mut sqlx::PgConnection,
        queries: &InboxQueries,
        claim: Claim<'_>,
    ) -> Result<Claimed, Error> {
        for _ in 0..CLAIMS {
            let claimed = sqlx::query(AssertSqlSafe(Arc::clone(&queries.claim)))
                .bind(claim.consumer)
                .bind(claim.idempotency_key)
                .bind(claim.metadata.message_id.as_uuid())
                .bind(claim.metadata.event_type.as_str())
                .bind(claim.lane)
                .execute(&mut *connection)
                .await
                .map_err(Error::database(CLAIMING))?;
            if claimed.rows_affected() == 1 {
                return Ok(Claimed::First);
            }
            let why: (bool, bool) = sqlx::query_as(AssertSqlSafe(Arc::clone(&queries.unclaimed)))
                .bind(claim.consumer)
                .bind(claim.idempotency_key)
                .bind(claim.lane)
                .fetch_one(&mut *connection)
                .await
                .map_err(Error::database(CLAIMING))?;
            match why {
                (true, _) => return Ok(Claimed::Duplicate),
                (false, true) => return Ok(Claimed::Held),
                (false, false) => {}
            }
        }
        // It waits in the table then, and is tried from there.
        Ok(Claimed::Held)
    }

    async fn claim_all(
        connection: &mut sqlx::PgConnection,
        queries: &InboxQueries,
        claims: &[Claim<'_>],
    ) -> Result<Vec<Claimed>, Error> {
        let consumers: Vec<_> = claims.iter().map(|claim| claim.consumer).collect();
        let keys: Vec<_> = claims.iter().map(|claim| claim.idempotency_key).collect();
        let ids: Vec<_> = claims
            .iter()
            .map(|claim| claim.metadata.message_id.as_uuid())
            .collect();
        let types: Vec<_> = claims
            .iter()
            .map(|claim| claim.metadata.event_type.as_str())
            .collect();
        let lanes: Vec<_> = claims.iter().map(|claim| claim.lane).collect();
        let others: Vec<(i64, bool)> =
            sqlx::query_as(AssertSqlSafe(Arc::clone(&queries.claim_all)))
                .bind(consumers)
                .bind(keys)
                .bind(ids)
                .bind(types)
                .bind(lanes)
                .fetch_all(connection)
                .await
                .map_err(Error::database(CLAIMING))?;
        let mut claimed = vec![Claimed::First; claims.len()];
        for (place, is_held) in others {
            let place = usize::try_from(place - 1).ok();
            if let Some(claimed) = place.and_then(|place| claimed.get_mut(place)) {
                *claimed = not_first(is_held);
            }
        }
        Ok(claimed)
    }

    async fn is_handled(
        connection: &mut sqlx::PgConnection,
        queries: &InboxQueries,
        claim: Claim<'_>,
    ) -> Result<(bool, bool), Error> {
        sqlx::query_as(AssertSqlSafe(Arc::clone(&queries.done)))
            .bind(claim.consumer)
            .bind(claim.idempotency_key)
            .fetch_one(connection)
            .await
            .map_err(Error::database(CLAIMING))
    }
}

const fn not_first(is_held: bool) -> Claimed {
    if is_held {
        Claimed::Held
    } else {
        Claimed::Duplicate
    }
}
