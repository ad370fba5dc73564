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
    /// Where the message came from.
    pub metadata: &'a Metadata,
}

/// Remembers which messages a consumer has handled.
pub trait InboxStore: Database {
    /// The statement of [`claim`](Self::claim), with the names filled in.
    #[doc(hidden)]
    fn claim_sql(names: &Names) -> String;

    /// Claims the message for the transaction of `connection`; `false` if it is claimed already.
    ///
    /// The row counts once the transaction has committed, together with the handler's effect. A
    /// claim by another transaction that is still open is waited for. A claim that exists leaves
    /// the transaction usable.
    #[doc(hidden)]
    fn claim(
        connection: &mut Self::Connection,
        sql: &str,
        claim: Claim<'_>,
    ) -> impl Future<Output = Result<bool, Error>> + Send;
}
