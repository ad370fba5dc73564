use std::sync::Arc;

use futures_util::future::BoxFuture;
use serde_json::value::RawValue;
use sqlx::error::BoxDynError;
use sqlx::sqlite::{Sqlite, SqliteArguments, SqliteConnection, SqliteRow};
use sqlx::types::Json;
use sqlx::{
    Arguments, AssertSqlSafe, Connection, Decode, Executor, Pool, Row, SqlSafeStr, Transaction,
    Type,
};

use crate::store::backend::in_its_own_time;
use crate::store::backend::sealed::Sealed;
use crate::store::{Backend, Names, RowLock, TableMapping, Values, quote};

/// How SQLite refuses to begin a transaction in a transaction.
const WITHIN: &str = "within a transaction";
/// How it refuses to commit without one.
const WITHOUT: &str = "no transaction is active";

/// The SQL of one outbox on SQLite.
#[derive(Debug)]
pub struct Queries {
    pub(super) insert_events: String,
    pub(super) insert_scheduled: String,
    pub(super) keys_stored: Arc<str>,
    pub(super) keys_scheduled: Arc<str>,
    pub(super) scheduled_cancel: Arc<str>,
    pub(super) scheduled_next: Arc<str>,
    pub(super) scheduled_move: Arc<str>,
    pub(super) scheduled_moved: Arc<str>,
}

impl Sealed for Sqlite {}

impl Backend for Sqlite {
    type Queries = Queries;

    fn queries(names: &Names) -> Queries {
        let shared = |sql: &str| Arc::from(names.render(sql));
        Queries {
            insert_events: names.render(include_str!("sql/insert_events.sql")),
            insert_scheduled: names.render(include_str!("sql/insert_scheduled.sql")),
            keys_stored: shared(include_str!("sql/keys_stored.sql")),
            keys_scheduled: shared(include_str!("sql/keys_scheduled.sql")),
            scheduled_cancel: shared(include_str!("sql/scheduled_cancel.sql")),
            scheduled_next: shared(include_str!("sql/scheduled_next.sql")),
            scheduled_move: shared(include_str!("sql/scheduled_move.sql")),
            scheduled_moved: shared(include_str!("sql/scheduled_moved.sql")),
        }
    }

    async fn begin(pool: &Pool<Self>) -> Result<Transaction<'static, Self>, sqlx::Error> {
        let pool = pool.clone();
        in_its_own_time(begin_immediately(pool)).await
    }

    /// Some failures end the whole transaction: a full disk, `ON CONFLICT ROLLBACK`, a trigger's
    /// `RAISE(ROLLBACK)`. Whoever goes on after one would write outside of any transaction.
    async fn check_transaction(connection: &mut SqliteConnection) -> Result<(), sqlx::Error> {
        // Within a transaction this fails and changes nothing.
        match connection.execute("BEGIN").await {
            Err(sqlx::Error::Database(error)) if error.message().ends_with(WITHIN) => Ok(()),
            Err(error) => Err(error),
            Ok(_) => {
                connection.execute("ROLLBACK").await?;
                Err(is_over())
            }
        }
    }

    /// A COMMIT without a transaction fails: it is the check.
    async fn commit_checked(transaction: Transaction<'static, Self>) -> Result<(), sqlx::Error> {
        transaction.commit().await.map_err(of_commit)
    }

    /// Another process may write between the two. Then it is kept by nobody: the empty transaction
    /// that never waits is for sqlx to take back.
    async fn commit_and_begin(
        transaction: &mut Transaction<'static, Self>,
        _checked: bool,
    ) -> Result<bool, sqlx::Error> {
        transaction.execute("COMMIT").await.map_err(of_commit)?;
        if transaction.execute("BEGIN IMMEDIATE").await.is_ok() {
            return Ok(true);
        }
        // What was committed stays so, whatever becomes of the connection.
        let _ = transaction.execute("BEGIN").await;
        Ok(false)
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

/// Begins the transaction of the one writer on a connection of the pool.
async fn begin_immediately(
    pool: Pool<Sqlite>,
) -> Result<Transaction<'static, Sqlite>, sqlx::Error> {
    loop {
        let connection = pool.acquire().await?;
        if connection.is_in_transaction() {
            // Its last transaction ended behind sqlx's back (see `check_transaction`), and sqlx
            // would refuse it every further one.
            connection.close().await?;
            continue;
        }
        // A deferred transaction that reads first and writes later fails with SQLITE_BUSY
        // where this one waits.
        let begin = "BEGIN IMMEDIATE".into_sql_str();
        return Transaction::begin(connection, Some(begin)).await;
    }
}

/// Says of a commit without a transaction what a look at the transaction says.
fn of_commit(error: sqlx::Error) -> sqlx::Error {
    match &error {
        sqlx::Error::Database(refusal) if refusal.message().ends_with(WITHOUT) => is_over(),
        _ => error,
    }
}

fn is_over() -> sqlx::Error {
    sqlx::Error::Protocol(
        "the transaction is over; a statement that failed, or a COMMIT or ROLLBACK of your own, has \
         ended it"
            .to_owned(),
    )
}
