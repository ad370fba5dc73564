use std::future::Future;
use std::time::Duration;

use sqlx::Database;
use uuid::Uuid;

use super::Names;

/// An instance of a service as a member of its consumer group.
#[derive(Debug, Clone, Copy)]
pub struct Member<'a> {
    /// The consumer group.
    pub group: &'a str,
    /// The instance.
    pub instance: Uuid,
    /// How long its leases hold from now on, by the database's clock.
    pub lease: Duration,
    /// Into how many partitions the broker divides the group's messages.
    pub partitions: u16,
}

/// What a member learns when it renews its leases.
#[derive(Debug, PartialEq, Eq)]
pub struct Membership {
    /// How many members are alive, this one included.
    pub members: usize,
    /// The partitions that this one owns.
    pub owned: Vec<u16>,
}

/// Shares a broker's partitions out among the instances of a service.
///
/// Each method is part of a transaction that the caller has begun, or one statement: a call that is
/// dropped or fails changes nothing or all, and repeating it is right.
pub trait PartitionStore: Database {
    /// The SQL with the names of one outbox filled in.
    type PartitionQueries: Send + Sync + 'static;

    /// Fills in the names.
    #[doc(hidden)]
    fn partition_queries(names: &Names) -> Self::PartitionQueries;

    /// Says that the member lives, and renews the leases of its partitions.
    #[doc(hidden)]
    fn renew_partitions(
        connection: &mut Self::Connection,
        queries: &Self::PartitionQueries,
        member: Member<'_>,
    ) -> impl Future<Output = Result<Membership, sqlx::Error>> + Send;

    /// Takes up to `most` partitions that nobody owns, or whose owner's lease is over.
    #[doc(hidden)]
    fn claim_partitions(
        connection: &mut Self::Connection,
        queries: &Self::PartitionQueries,
        member: Member<'_>,
        most: usize,
    ) -> impl Future<Output = Result<Vec<u16>, sqlx::Error>> + Send;

    /// Whether there is a partition that nobody owns, or whose owner's lease is over. Reads only.
    #[doc(hidden)]
    fn any_partition_vacant(
        connection: &mut Self::Connection,
        queries: &Self::PartitionQueries,
        member: Member<'_>,
    ) -> impl Future<Output = Result<bool, sqlx::Error>> + Send;

    /// Gives partitions up, where the member still owns them.
    #[doc(hidden)]
    fn release_partitions(
        connection: &mut Self::Connection,
        queries: &Self::PartitionQueries,
        member: Member<'_>,
        partitions: &[u16],
    ) -> impl Future<Output = Result<(), sqlx::Error>> + Send;

    /// Takes the member out of the count.
    #[doc(hidden)]
    fn leave_group(
        connection: &mut Self::Connection,
        queries: &Self::PartitionQueries,
        member: Member<'_>,
    ) -> impl Future<Output = Result<(), sqlx::Error>> + Send;
}

/// The numbers of partitions as they were read; others than a member can ask for are left out.
pub(crate) fn numbers(read: Vec<i32>) -> Vec<u16> {
    read.into_iter().filter_map(|n| n.try_into().ok()).collect()
}
