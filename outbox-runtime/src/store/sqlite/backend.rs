use futures_util::future::BoxFuture;
use serde_json::value::RawValue;
use sqlx::error::BoxDynError;
use sqlx::sqlite::{Sqlite, SqliteArguments, SqliteConnection, SqliteRow};
use sqlx::types::Json;
use sqlx::{Arguments, AssertSqlSafe, Decode, Executor, Pool, Row, Transaction, Type};

use crate::store::backend::sealed::Sealed;
use crate::store::{Backend, Names, RowLock, TableMapping, Values, quote};

/// The SQL of one outbox on SQLite.
#[derive(Debug)]
pub struct Queries {
    pub(super) insert_events: String,
}

impl Sealed for Sqlite {}

impl Backend for Sqlite {
    type Queries = Queries;

    fn queries(names: &Names) -> Queries {
        Queries {
            insert_events: names.render(include_str!("sql/insert_events.sql")),
        }
    }

    async fn begin(pool: &Pool<Self>) -> Result<Transaction<'static, Self>, sqlx::Error> {
        // A deferred transaction that reads first and writes later fails with SQLITE_BUSY where
        // this one waits.
        pool.begin_with("BEGIN IMMEDIATE").await
    }

    async fn check_transaction(_connection: &mut SqliteConnection) -> Result<(), sqlx::Error> {
        // A failed statement takes back itself alone, and a COMMIT without a transaction fails.
        Ok(())
    }

    fn run(
        connection: &mut SqliteConnection,
        sql: String,
    ) -> BoxFuture<'_, Result<(), sqlx::Error>> {
        Box::pin(async move { connection.execute(AssertSqlSafe(sql)).await.map(drop) })
    }
}

impl Values for Sqlite {
    const SINGLE_WRITER: bool = true;

    fn select(table: &TableMapping, ids: usize, _lock: RowLock) -> String {
        let columns: Vec<_> = [table.id()]
            .into_iter()
            .chain(table.others().iter().map(String::as_str))
            .chain([table.version()])
            .map(quote)
            .collect();
        let places: Vec<_> = (1..=ids).map(|n| format!("${n}")).collect();
        format!(
            "SELECT {} FROM {} WHERE {} IN ({})",
            columns.join(", "),
            table.quoted_table(),
            quote(table.id()),
            places.join(", "),
        )
    }

    fn add_i64(arguments: &mut SqliteArguments, value: i64) -> Result<(), BoxDynError> {
        arguments.add(value)
    }

    fn add_json(arguments: &mut SqliteArguments, value: Box<RawValue>) -> Result<(), BoxDynError> {
        arguments.add(Json(value))
    }

    fn get<'r, T: Decode<'r, Self> + Type<Self>>(
        row: &'r SqliteRow,
        index: usize,
    ) -> Result<T, sqlx::Error> {
        row.try_get(index)
    }

    fn get_i64(row: &SqliteRow, index: usize) -> Result<i64, sqlx::Error> {
        row.try_get(index)
    }

    fn get_json(row: &SqliteRow, index: usize) -> Result<Box<RawValue>, sqlx::Error> {
        let text: String = row.try_get(index)?;
        RawValue::from_string(text).map_err(|error| sqlx::Error::Decode(error.into()))
    }

    fn fetch_all(
        connection: &mut SqliteConnection,
        sql: String,
        arguments: SqliteArguments,
    ) -> BoxFuture<'_, Result<Vec<SqliteRow>, sqlx::Error>> {
        Box::pin(async move {
            sqlx::query_with(AssertSqlSafe(sql), arguments)
                .fetch_all(connection)
                .await
        })
    }
}
