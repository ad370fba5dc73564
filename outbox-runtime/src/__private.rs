//! What generated code names. Not public API: it changes without notice.

mod columns;
mod decode;
mod failure;
mod key;

pub use std::boxed::Box;
pub use std::string::String;
pub use std::sync::LazyLock;
pub use std::vec::Vec;

pub use futures_util::future::BoxFuture;
pub use inventory;
pub use serde;
pub use serde_json;
pub use sqlx;

pub use crate::domain::{
    Aggregate, AggregateRoot, DecodeError, DomainEvent, Envelope, KeyError, KeyWriter, Message,
    Metadata, Raises,
};
pub use crate::handler::{
    AggregateRegistration, EventRegistration, HandlerCall, HandlerEntry, HandlerError,
    HandlerRegistration, State, StateRequirement,
};
pub use crate::store::{
    Backend, Change, CustomPersistence, Persist, RowLock, TableMapping, ValueObject,
    ValueObjectRow, Values,
};
pub use crate::unit_of_work::UnitOfWork;
pub use sqlx::error::BoxDynError;

pub use self::columns::{ColumnValue, Columns, JsonValue, add_json};
pub use self::decode::{RaisedBy, UpcastFrom, open, upcast};
pub use self::failure::{HandlerFailure, KindKnown, KindOf, KindUnknown, failed};
pub use self::key::{
    KeyField, KeyPart, KeyValue, MaybePart, PresentKeyValue, PresentPart, write_key,
};

/// Compares two strings while compiling.
pub const fn str_eq(a: &str, b: &str) -> bool {
    let (a, b) = (a.as_bytes(), b.as_bytes());
    if a.len() != b.len() {
        return false;
    }
    let mut n = 0;
    #[allow(clippy::indexing_slicing)] // `get` is not const; `n` is below both lengths
    while n < a.len() {
        if a[n] != b[n] {
            return false;
        }
        n += 1;
    }
    true
}

/// Loads rows of a mapped table; `bind_id` adds one id, `read` makes an aggregate of a row whose
/// columns are the id, the others in order, and the version.
pub fn load_mapped<'a, DB: Backend, A: Aggregate>(
    connection: &'a mut DB::Connection,
    table: &'static TableMapping,
    ids: &'a [A::Id],
    lock: RowLock,
    bind_id: fn(&A::Id, &mut DB::Arguments) -> Result<(), BoxDynError>,
    read: fn(&DB::Row) -> Result<A, sqlx::Error>,
) -> BoxFuture<'a, Result<Vec<A>, sqlx::Error>> {
    Box::pin(async move {
        if ids.is_empty() {
            return Ok(Vec::new());
        }
        let mut arguments = DB::Arguments::default();
        for id in ids {
            bind_id(id, &mut arguments).map_err(sqlx::Error::Encode)?;
        }
        let rows = DB::fetch_all(connection, DB::select(table, ids.len(), lock), arguments).await?;
        rows.iter().map(read).collect()
    })
}

/// Loads aggregates with a persistence of the user's, one by one.
pub fn load_custom<'a, DB: Backend, A: CustomPersistence<DB>>(
    connection: &'a mut DB::Connection,
    ids: &'a [A::Id],
    lock: RowLock,
) -> BoxFuture<'a, Result<Vec<A>, sqlx::Error>> {
    Box::pin(async move {
        let mut found = Vec::with_capacity(ids.len());
        for id in ids {
            found.extend(A::load(connection, id, lock).await?);
        }
        Ok(found)
    })
}

/// Writes an aggregate with a persistence of the user's.
pub fn write_custom<'a, DB: Backend, A: CustomPersistence<DB>>(
    aggregate: &'a A,
    change: Change,
    expected_version: i64,
    connection: &'a mut DB::Connection,
) -> BoxFuture<'a, Result<bool, sqlx::Error>> {
    match change {
        Change::Insert => aggregate.insert(connection),
        Change::Update => aggregate.update(expected_version, connection),
        Change::Delete => aggregate.delete(expected_version, connection),
    }
}

/// The entries of a handler that is generic over its database: one for each enabled backend.
#[doc(hidden)]
#[macro_export]
#[cfg(all(feature = "sqlite", feature = "postgres"))]
macro_rules! __handler_entries {
    ($call:ident) => {
        &[
            &$crate::__private::HandlerEntry::<$crate::__private::sqlx::Sqlite> {
                call: $call::<$crate::__private::sqlx::Sqlite>,
            },
            &$crate::__private::HandlerEntry::<$crate::__private::sqlx::Postgres> {
                call: $call::<$crate::__private::sqlx::Postgres>,
            },
        ]
    };
}

/// The entries of a handler that is generic over its database: one for each enabled backend.
#[doc(hidden)]
#[macro_export]
#[cfg(all(feature = "sqlite", not(feature = "postgres")))]
macro_rules! __handler_entries {
    ($call:ident) => {
        &[
            &$crate::__private::HandlerEntry::<$crate::__private::sqlx::Sqlite> {
                call: $call::<$crate::__private::sqlx::Sqlite>,
            },
        ]
    };
}

/// The entries of a handler that is generic over its database: one for each enabled backend.
#[doc(hidden)]
#[macro_export]
#[cfg(all(not(feature = "sqlite"), feature = "postgres"))]
macro_rules! __handler_entries {
    ($call:ident) => {
        &[
            &$crate::__private::HandlerEntry::<$crate::__private::sqlx::Postgres> {
                call: $call::<$crate::__private::sqlx::Postgres>,
            },
        ]
    };
}

/// The entries of a handler that is generic over its database: none without a backend.
#[doc(hidden)]
#[macro_export]
#[cfg(not(any(feature = "sqlite", feature = "postgres")))]
macro_rules! __handler_entries {
    ($call:ident) => {
        &[]
    };
}

pub use crate::__handler_entries as handler_entries;
