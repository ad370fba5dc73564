use std::sync::Arc;

use sqlx::AssertSqlSafe;
use sqlx::postgres::{PgConnection, Postgres};

use super::relay::as_i64;
use crate::store::partitions::numbers;
use crate::store::{Member, Membership, Names, PartitionStore};

/// The SQL of partitions of one outbox on PostgreSQL.
#[derive(Debug)]
pub struct PartitionQueries {
    add: Arc<str>,
    heartbeat: Arc<str>,
    renew: Arc<str>,
    claim: Arc<str>,
    vacant: Arc<str>,
    release: Arc<str>,
    leave: Arc<str>,
}

impl PartitionStore for Postgres {
    type PartitionQueries = PartitionQueries;

    fn partition_queries(names: &Names) -> PartitionQueries {
        let render = |sql: &str| Arc::from(names.render(sql));
        PartitionQueries {
            add: render(include_str!("sql/partition_add.sql")),
            heartbeat: render(include_str!("sql/partition_heartbeat.sql")),
            renew: render(include_str!("sql/partition_renew.sql")),
            claim: render(include_str!("sql/partition_claim.sql")),
            vacant: render(include_str!("sql/partition_vacant.sql")),
            release: render(include_str!("sql/partition_release.sql")),
            leave: render(include_str!("sql/partition_leave.sql")),
        }
    }

    async fn renew_partitions(
        connection: &mut PgConnection,
        queries: &PartitionQueries,
        member: Member<'_>,
    ) -> Result<Membership, sqlx::Error> {
        sqlx::query(AssertSqlSafe(Arc::clone(&queries.add)))
            .bind(member.group)
            .bind(i32::from(member.partitions))
            .execute(&mut *connection)
            .await?;
        let others: i64 = sqlx::query_scalar(AssertSqlSafe(Arc::clone(&queries.heartbeat)))
            .bind(member.group)
            .bind(member.instance)
            .bind(member.lease.as_secs_f64())
            .fetch_one(&mut *connection)
            .await?;
        let owned = sqlx::query_scalar(AssertSqlSafe(Arc::clone(&queries.renew)))
            .bind(member.group)
            .bind(member.instance)
            .bind(member.lease.as_secs_f64())
            .fetch_all(connection)
            .await?;
        Ok(Membership {
            members: usize::try_from(others)
                .unwrap_or_default()
                .saturating_add(1),
            owned: numbers(owned),
        })
    }

    async fn claim_partitions(
        connection: &mut PgConnection,
        queries: &PartitionQueries,
        member: Member<'_>,
        most: usize,
    ) -> Result<Vec<u16>, sqlx::Error> {
        let claimed = sqlx::query_scalar(AssertSqlSafe(Arc::clone(&queries.claim)))
            .bind(member.group)
            .bind(member.instance)
            .bind(member.lease.as_secs_f64())
            .bind(i32::from(member.partitions))
            .bind(as_i64(most))
            .fetch_all(connection)
            .await?;
        Ok(numbers(claimed))
    }

    async fn any_partition_vacant(
        connection: &mut PgConnection,
        queries: &PartitionQueries,
        member: Member<'_>,
    ) -> Result<bool, sqlx::Error> {
        sqlx::query_scalar(AssertSqlSafe(Arc::clone(&queries.vacant)))
            .bind(member.group)
            .bind(i32::from(member.partitions))
            .fetch_one(connection)
            .await
    }

    async fn release_partitions(
        connection: &mut PgConnection,
        queries: &PartitionQueries,
        member: Member<'_>,
        partitions: &[u16],
    ) -> Result<(), sqlx::Error> {
        let partitions: Vec<i32> = partitions.iter().copied().map(i32::from).collect();
        sqlx::query(AssertSqlSafe(Arc::clone(&queries.release)))
            .bind(member.group)
            .bind(member.instance)
            .bind(partitions)
            .execute(connection)
            .await
            .map(drop)
    }

    async fn leave_group(
        connection: &mut PgConnection,
        queries: &PartitionQueries,
        member: Member<'_>,
    ) -> Result<(), sqlx::Error> {
        sqlx::query(AssertSqlSafe(Arc::clone(&queries.leave)))
            .bind(member.group)
            .bind(member.instance)
            .execute(connection)
            .await
            .map(drop)
    }
}
