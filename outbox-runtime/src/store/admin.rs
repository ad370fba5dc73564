use std::future::Future;

use sqlx::{Database, Pool};

use super::{Error, Names, TableMapping};

/// How many messages are parked in one state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParkedCount {
    /// Of which consumer; `None` for the relay's, empty for events that no handler takes.
    pub consumer: Option<String>,
    /// As the tables name it.
    pub state: String,
    /// How many.
    pub messages: u64,
}

/// Looks at what is in the database, for the checks at the start and for operators.
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

    /// How many messages are parked; at most `most` of each table are counted.
    #[doc(hidden)]
    fn parked_counts(
        pool: &Pool<Self>,
        names: &Names,
        most: u32,
    ) -> impl Future<Output = Result<Vec<ParkedCount>, Error>> + Send;
}
