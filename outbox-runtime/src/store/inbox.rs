use std::future::Future;

use sqlx::Database;

use super::{Error, Names};
use crate::domain::Metadata;

/// What a handler's transaction writes first.
#[derive(Debug, Clone, Copy)]
pub struct Claim<'a> {
    /// The consumer's name.
    pub consumer: &'a str,
    /// The consumer's key for the message.
    pub idempotency_key: &'a str,
    /// The lane in which the message must not pass one that is parked; `None` for a message that
    /// comes out of the parked ones itself.
    pub lane: Option<&'a str>,
    /// Where the message came from.
    pub metadata: &'a Metadata,
}

/// What became of a claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Claimed {
    /// The message is the transaction's to handle.
    First,
    /// It is claimed already.
    Duplicate,
    /// An earlier message of its lane is parked. Nothing was written.
    Held,
}

/// Remembers which messages a consumer has handled.
pub trait InboxStore: Database {
    /// The inbox's SQL with the names of one outbox filled in.
    #[doc(hidden)]
    type InboxQueries: Send + Sync + 'static;

    /// Fills in the names.
    #[doc(hidden)]
    fn inbox_queries(names: &Names) -> Self::InboxQueries;

    /// Claims the message for the transaction of `connection`.
    ///
    /// The row counts once the transaction has committed, together with the handler's effect. A
    /// claim by another transaction that is still open is waited for. A claim that exists leaves
    /// the transaction usable.
    #[doc(hidden)]
    fn claim(
        connection: &mut Self::Connection,
        queries: &Self::InboxQueries,
        claim: Claim<'_>,
    ) -> impl Future<Output = Result<Claimed, Error>> + Send;

    /// As [`claim`](Self::claim) for many, no two of which have the same consumer and key, in their
    /// order; on PostgreSQL by one statement.
    #[doc(hidden)]
    fn claim_all(
        connection: &mut Self::Connection,
        queries: &Self::InboxQueries,
        claims: &[Claim<'_>],
    ) -> impl Future<Output = Result<Vec<Claimed>, Error>> + Send;

    /// Whether the claim's message is handled already, by a transaction that has committed, and whether
    /// the next statement of this one will see what others commit meanwhile. It writes nothing and
    /// waits for nobody.
    #[doc(hidden)]
    fn is_handled(
        connection: &mut Self::Connection,
        queries: &Self::InboxQueries,
        claim: Claim<'_>,
    ) -> impl Future<Output = Result<(bool, bool), Error>> + Send;
}

/// What is being done, for errors.
pub(super) const CLAIMING: &str = "claiming a message in the inbox";
