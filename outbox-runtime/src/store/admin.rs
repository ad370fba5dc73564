use std::future::Future;

use sqlx::{Database, Pool};

use super::{Error, Names, TableMapping};

/// Looks at what is in the database when a program starts.
pub trait AdminStore: Database {
    /// The columns of an aggregate's table; none when there is no such table.
    #[doc(hidden)]
    fn columns(
        pool: &Pool<Self>,
        table: &TableMapping,
    ) -> impl Future<Output = Result<Vec<String>, Error>> + Send;

    /// Whether the database takes the two for one column's name.
    #[doc(hidden)]
    fn is_same_column(a: &str, b: &str) -> bool;

    /// The names of the events that a service wrote lately.
    #[doc(hidden)]
    fn recent_event_types(
        pool: &Pool<Self>,
        names: &Names,
        producer: &str,
    ) -> impl Future<Output = Result<Vec<String>, Error>> + Send;
}
