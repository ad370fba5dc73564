use async_trait::async_trait;
use futures_util::future::{self, BoxFuture};
use sqlx::error::BoxDynError;

use super::{Backend, TableMapping};
use crate::domain::Aggregate;

/// What happens to an aggregate's row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Change {
    /// A new row.
    Insert,
    /// A changed row.
    Update,
    /// A removed row.
    Delete,
}

/// Whether a load locks the row against other writers until the transaction ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum RowLock {
    /// No lock: the version check at the save guards the change.
    None,
    /// `SELECT ... FOR UPDATE`, or the write transaction itself on a database with one writer.
    ForUpdate,
}

/// How an aggregate is stored on `DB`: what `#[aggregate]` generates.
///
/// For a persistence of your own implement [`CustomPersistence`] and say
/// `#[aggregate(persistence = custom)]`.
#[diagnostic::on_unimplemented(
    message = "the aggregate `{Self}` can't be stored on `{DB}`",
    note = "each of its columns needs sqlx's `Type`, `Encode` and `Decode` on that database; use `#[aggregate(json)]`, `embed` or `skip` for a field without them",
    note = "with `persistence = custom`, implement `CustomPersistence<{DB}>` for it"
)]
pub trait Persist<DB: Backend>: Aggregate {
    /// Loads those of `ids` that exist, in any order.
    fn load<'a>(
        connection: &'a mut DB::Connection,
        ids: &'a [Self::Id],
        lock: RowLock,
    ) -> BoxFuture<'a, Result<Vec<Self>, sqlx::Error>>;

    /// The table, where the row can join the commit's one statement.
    fn table() -> Option<&'static TableMapping>;

    /// Binds the id alone.
    ///
    /// # Errors
    /// What the id's `Encode` says.
    fn bind_id(&self, _arguments: &mut DB::Arguments) -> Result<(), BoxDynError> {
        Ok(())
    }

    /// Binds all columns but id and version, in the order of [`TableMapping::others`].
    ///
    /// # Errors
    /// What a column's `Encode` says.
    fn bind_others(&self, _arguments: &mut DB::Arguments) -> Result<(), BoxDynError> {
        Ok(())
    }

    /// Writes at once, for a persistence without a [`table`](Self::table). `Ok(false)` when no
    /// row had the expected version, or a new one exists already.
    fn write_now<'a>(
        &'a self,
        _change: Change,
        _expected_version: i64,
        _connection: &'a mut DB::Connection,
    ) -> BoxFuture<'a, Result<bool, sqlx::Error>> {
        Box::pin(future::ready(Ok(false)))
    }
}

/// A persistence of your own, for an aggregate that maps to several tables or to an old schema.
///
/// All methods run in the unit of work's transaction. Store `self.root().version()` and compare
/// it as said below, or two units of work can overwrite each other.
#[diagnostic::on_unimplemented(
    message = "`{Self}` has no persistence on `{DB}`",
    label = "`persistence = custom` promises one",
    note = "implement `CustomPersistence<{DB}>` for it, or remove `persistence = custom`"
)]
#[async_trait]
pub trait CustomPersistence<DB: Backend>: Aggregate {
    /// Loads one aggregate, with `AggregateRoot::at_version(stored version)` in it.
    ///
    /// # Errors
    /// What sqlx says.
    async fn load(
        connection: &mut DB::Connection,
        id: &Self::Id,
        lock: RowLock,
    ) -> Result<Option<Self>, sqlx::Error>;

    /// Stores a new aggregate at version `self.root().version()`; `false` if it exists already
    /// (`ON CONFLICT DO NOTHING`, as a failed statement would abort the transaction).
    ///
    /// # Errors
    /// What sqlx says.
    async fn insert(&self, connection: &mut DB::Connection) -> Result<bool, sqlx::Error>;

    /// Stores the change and version `self.root().version()` where the stored version is
    /// `expected_version`; `false` if it is another.
    ///
    /// # Errors
    /// What sqlx says.
    async fn update(
        &self,
        expected_version: i64,
        connection: &mut DB::Connection,
    ) -> Result<bool, sqlx::Error>;

    /// Removes the aggregate where the stored version is `expected_version`; `false` if it is another.
    ///
    /// # Errors
    /// What sqlx says.
    async fn delete(
        &self,
        expected_version: i64,
        connection: &mut DB::Connection,
    ) -> Result<bool, sqlx::Error>;
}

/// A database that stores the aggregate `A`: what code that is generic over the database asks for.
///
/// It holds by itself wherever `A: Persist<Self>` does. A trait of your own gathers the aggregates
/// of a service:
///
/// ```
/// # use outbox_runtime::prelude::*;
/// # typed_id! { pub struct OrderId(String); }
/// # #[aggregate] pub struct Order { id: OrderId, root: AggregateRoot }
/// # #[aggregate] pub struct Payment { id: OrderId, root: AggregateRoot }
/// pub trait ShopDb: Stores<Order> + Stores<Payment> {}
/// impl<DB: Stores<Order> + Stores<Payment>> ShopDb for DB {}
/// ```
pub trait Stores<A: Aggregate>: Backend {
    #[doc(hidden)]
    fn load<'a>(
        connection: &'a mut Self::Connection,
        ids: &'a [A::Id],
        lock: RowLock,
    ) -> BoxFuture<'a, Result<Vec<A>, sqlx::Error>>;

    #[doc(hidden)]
    fn table() -> Option<&'static TableMapping>;

    #[doc(hidden)]
    fn bind(
        aggregate: &A,
        change: Change,
        expected_version: i64,
        arguments: &mut Self::Arguments,
    ) -> Result<(), BoxDynError>;

    #[doc(hidden)]
    fn write_now<'a>(
        aggregate: &'a A,
        change: Change,
        expected_version: i64,
        connection: &'a mut Self::Connection,
    ) -> BoxFuture<'a, Result<bool, sqlx::Error>>;
}

impl<DB: Backend, A: Persist<DB>> Stores<A> for DB {
    fn load<'a>(
        connection: &'a mut DB::Connection,
        ids: &'a [A::Id],
        lock: RowLock,
    ) -> BoxFuture<'a, Result<Vec<A>, sqlx::Error>> {
        A::load(connection, ids, lock)
    }

    fn table() -> Option<&'static TableMapping> {
        A::table()
    }

    fn bind(
        aggregate: &A,
        change: Change,
        expected_version: i64,
        arguments: &mut DB::Arguments,
    ) -> Result<(), BoxDynError> {
        let version = aggregate.root().version();
        match change {
            Change::Insert => {
                aggregate.bind_id(arguments)?;
                aggregate.bind_others(arguments)?;
                DB::add_i64(arguments, version)
            }
            Change::Update => {
                aggregate.bind_others(arguments)?;
                DB::add_i64(arguments, version)?;
                aggregate.bind_id(arguments)?;
                DB::add_i64(arguments, expected_version)
            }
            Change::Delete => {
                aggregate.bind_id(arguments)?;
                DB::add_i64(arguments, expected_version)
            }
        }
    }

    fn write_now<'a>(
        aggregate: &'a A,
        change: Change,
        expected_version: i64,
        connection: &'a mut DB::Connection,
    ) -> BoxFuture<'a, Result<bool, sqlx::Error>> {
        aggregate.write_now(change, expected_version, connection)
    }
}
