use std::future::Future;

use sqlx::{Database, Pool};

use super::{Error, TableMapping};

/// Looks at tables that are the user's own.
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
}
