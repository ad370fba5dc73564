use std::future::Future;

use futures_util::future::BoxFuture;
use serde_json::value::RawValue;
use sqlx::error::BoxDynError;
use sqlx::{Database, Decode, Encode, Pool, Transaction, Type};

use super::{
    AdminStore, BacklogStore, DeadLetterStore, InboxParkingStore, MigrationStore, Names,
    ParkingStore, PartitionStore, RelayStore, RetentionStore, RowLock, ScheduleStore, TableMapping,
    WriteStore,
};

/// A database on which units of work, outbox and inbox can live.
///
/// It is implemented for [`sqlx::Sqlite`] and [`sqlx::Postgres`], each behind the cargo feature of
/// its name, and sealed: the tables and the relay's proofs belong to the backend.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a database of the outbox",
    note = "enable the cargo feature `sqlite` or `postgres` of outbox-runtime and use `sqlx::Sqlite` or `sqlx::Postgres`"
)]
pub trait Backend:
    Values
    + WriteStore
    + MigrationStore
    + InboxParkingStore
    + PartitionStore
    + RelayStore
    + ParkingStore
    + ScheduleStore
    + RetentionStore
    + BacklogStore
    + DeadLetterStore
    + AdminStore
    + sealed::Sealed
{
    /// The SQL of this backend, with the names of one outbox filled in.
    type Queries: Send + Sync + 'static;

    /// Fills in the names.
    #[doc(hidden)]
    fn queries(names: &Names) -> Self::Queries;

    /// Begins a transaction that will write.
    #[doc(hidden)]
    fn begin(
        pool: &Pool<Self>,
    ) -> impl Future<Output = Result<Transaction<'static, Self>, sqlx::Error>> + Send;

    /// Fails when the transaction is over or was aborted by a statement whose error nobody looked
    /// at: what is written then would stand alone, and a COMMIT be a silent rollback.
    #[doc(hidden)]
    fn check_transaction(
        connection: &mut Self::Connection,
    ) -> impl Future<Output = Result<(), sqlx::Error>> + Send;

    /// Commits the transaction, if it still stands (see
    /// [`check_transaction`](Self::check_transaction)).
    #[doc(hidden)]
    fn commit_checked(
        transaction: Transaction<'static, Self>,
    ) -> impl Future<Output = Result<(), sqlx::Error>> + Send;

    /// Commits the transaction, if it still stands where that is to be `checked`, and begins the next
    /// one on its connection, in one round trip where that is possible. `false` if it is committed, but
    /// no next one could begin: the connection is not to be kept.
    #[doc(hidden)]
    fn commit_and_begin(
        transaction: &mut Transaction<'static, Self>,
        checked: bool,
    ) -> impl Future<Output = Result<bool, sqlx::Error>> + Send;

    /// Runs SQL without arguments, such as a savepoint's.
    #[doc(hidden)]
    fn run(
        connection: &mut Self::Connection,
        sql: String,
    ) -> BoxFuture<'_, Result<(), sqlx::Error>>;
}

/// How values of aggregates go to and come from the database.
///
/// What the expansion of `#[aggregate]` calls; it spares generated code the bounds that sqlx needs
/// on each concrete database.
pub trait Values: Database {
    /// The query for `ids` rows by their ids: the id, the other columns in order, the version.
    ///
    /// Without row locks, a lock is the write transaction itself.
    #[doc(hidden)]
    fn select(table: &TableMapping, ids: usize, lock: RowLock) -> String;

    /// Whether only one transaction can write at a time; an outbox then queues its writers fairly
    /// instead of letting them time out on the file's lock.
    #[doc(hidden)]
    const SINGLE_WRITER: bool;

    /// Adds a value.
    ///
    /// # Errors
    /// What the value's `Encode` says.
    fn add<'t, T: Encode<'t, Self> + Type<Self> + 't>(
        arguments: &mut Self::Arguments,
        value: T,
    ) -> Result<(), BoxDynError> {
        sqlx::Arguments::add(arguments, value)
    }

    /// Adds a 64-bit integer.
    ///
    /// # Errors
    /// What sqlx says.
    fn add_i64(arguments: &mut Self::Arguments, value: i64) -> Result<(), BoxDynError>;

    /// Adds JSON.
    ///
    /// # Errors
    /// What sqlx says.
    fn add_json(arguments: &mut Self::Arguments, value: Box<RawValue>) -> Result<(), BoxDynError>;

    /// Reads a value by its place in the row, from 0.
    ///
    /// # Errors
    /// What the type's `Decode` says.
    fn get<'r, T: Decode<'r, Self> + Type<Self>>(
        row: &'r Self::Row,
        index: usize,
    ) -> Result<T, sqlx::Error>;

    /// Reads a 64-bit integer by its place in the row, from 0.
    ///
    /// # Errors
    /// What sqlx says.
    fn get_i64(row: &Self::Row, index: usize) -> Result<i64, sqlx::Error>;

    /// Reads JSON by its place in the row, from 0.
    ///
    /// # Errors
    /// What sqlx says.
    fn get_json(row: &Self::Row, index: usize) -> Result<Box<RawValue>, sqlx::Error>;

    /// Runs a query with arguments and collects its rows.
    #[doc(hidden)]
    fn fetch_all(
        connection: &mut Self::Connection,
        sql: String,
        arguments: Self::Arguments,
    ) -> BoxFuture<'_, Result<Vec<Self::Row>, sqlx::Error>>;
}

pub(crate) mod sealed {
    /// Keeps [`Backend`](super::Backend) to this crate.
    pub trait Sealed {}
}

/// Lets something go on to its end in a task of its own, whoever waits for it goes away or not.
///
/// sqlx 0.9.0 counts a transaction only once its BEGIN was answered. Of one that is dropped meanwhile
/// it knows nothing, and the pool would hand out a connection inside of an open transaction: what is
/// committed there by one statement would be gone with the next rollback. A transaction that nobody
/// takes is rolled back.
pub(crate) async fn in_its_own_time<T: Send + 'static>(
    work: impl Future<Output = Result<T, sqlx::Error>> + Send + 'static,
) -> Result<T, sqlx::Error> {
    let done = tokio::spawn(work).await;
    done.unwrap_or_else(|error| Err(sqlx::Error::Io(std::io::Error::other(error))))
}
