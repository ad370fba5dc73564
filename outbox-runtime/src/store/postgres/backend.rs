use std::sync::Arc;

use futures_util::future::BoxFuture;
use serde_json::value::RawValue;
use sqlx::error::BoxDynError;
use sqlx::postgres::{PgArguments, PgConnection, PgRow, Postgres};
use sqlx::types::Json;
use sqlx::{Arguments, AssertSqlSafe, Decode, Executor, Pool, Row, Transaction, Type};

use super::write::Statements;
use crate::store::backend::in_its_own_time;
use crate::store::backend::sealed::Sealed;
use crate::store::{Backend, Names, RowLock, TableMapping, Values, quote};

/// The SQL of one outbox on PostgreSQL.
#[derive(Debug)]
pub struct Queries {
    /// The names in it.
    pub(super) names: Names,
    pub(super) statements: Statements,
    pub(super) insert_events: String,
    pub(super) insert_keyed_events: String,
    pub(super) insert_scheduled: String,
    pub(super) scheduled_cancel: Arc<str>,
    pub(super) scheduled_next: Arc<str>,
    pub(super) scheduled_move: Arc<str>,
}

impl Sealed for Postgres {}

impl Backend for Postgres {
    type Queries = Queries;

    fn queries(names: &Names) -> Queries {
        let shared = |sql: &str| Arc::from(names.render(sql));
        Queries {
            names: names.clone(),
            statements: Statements::default(),
            insert_events: names.render(include_str!("sql/insert_events.sql")),
            insert_keyed_events: names.render(include_str!("sql/insert_keyed_events.sql")),
            insert_scheduled: names.render(include_str!("sql/insert_scheduled.sql")),
            scheduled_cancel: shared(include_str!("sql/scheduled_cancel.sql")),
            scheduled_next: shared(include_str!("sql/scheduled_next.sql")),
            scheduled_move: shared(include_str!("sql/scheduled_move.sql")),
        }
    }

    async fn begin(pool: &Pool<Self>) -> Result<Transaction<'static, Self>, sqlx::Error> {
        let pool = pool.clone();
        in_its_own_time(async move { pool.begin().await }).await
    }

    /// A savepoint needs a transaction that is open and not aborted, and changes nothing in it.
    async fn check_transaction(connection: &mut PgConnection) -> Result<(), sqlx::Error> {
        let probe = "SAVEPOINT outbox_probe; RELEASE SAVEPOINT outbox_probe";
        connection.execute(probe).await.map(drop)
    }

    /// sqlx would ask again for a commit of what it takes for open, or take it back; so there is an
    /// empty transaction for it to take back, on the connection's way into the pool.
    async fn commit_checked(
        mut transaction: Transaction<'static, Self>,
    ) -> Result<(), sqlx::Error> {
        Self::commit_and_begin(&mut transaction, true)
            .await
            .map(drop)
    }

    /// All of it is one message to the server, which leaves out what comes after a failure. sqlx goes
    /// on to believe in one open transaction, and with the new one it is right.
    async fn commit_and_begin(
        transaction: &mut Transaction<'static, Self>,
        checked: bool,
    ) -> Result<bool, sqlx::Error> {
        let commit = if checked {
            "SAVEPOINT outbox_probe; RELEASE SAVEPOINT outbox_probe; COMMIT; BEGIN"
        } else {
            "COMMIT; BEGIN"
        };
        transaction.execute(commit).await.map(|_| true)
    }

    fn run(connection: &mut PgConnection, sql: String) -> BoxFuture<'_, Result<(), sqlx::Error>> {
        Box::pin(async move { connection.execute(AssertSqlSafe(sql)).await.map(drop) })
    }
}

impl Values for Postgres {
    const SINGLE_WRITER: bool = false;

    fn select(table: &TableMapping, ids: usize, lock: RowLock) -> String {
        let columns: Vec<_> = [table.id()]
            .into_iter()
            .chain(table.others().iter().map(String::as_str))
            .chain([table.version()])
            .map(quote)
            .collect();
        let places: Vec<_> = (1..=ids).map(|n| format!("${n}")).collect();
        format!(
            "SELECT {} FROM {} WHERE {} IN ({}){}",
            columns.join(", "),
            table.quoted_table(),
            quote(table.id()),
            places.join(", "),
            match lock {
                RowLock::None => "",
                RowLock::ForUpdate => " FOR UPDATE",
            },
        )
    }

    fn add_i64(arguments: &mut PgArguments, value: i64) -> Result<(), BoxDynError> {
        arguments.add(value)
    }

    fn add_json(arguments: &mut PgArguments, value: Box<RawValue>) -> Result<(), BoxDynError> {
        arguments.add(Json(value))
    }

    fn get<'r, T: Decode<'r, Self> + Type<Self>>(
        row: &'r PgRow,
        index: usize,
    ) -> Result<T, sqlx::Error> {
        row.try_get(index)
    }

    fn get_i64(row: &PgRow, index: usize) -> Result<i64, sqlx::Error> {
        row.try_get(index)
    }

    fn get_json(row: &PgRow, index: usize) -> Result<Box<RawValue>, sqlx::Error> {
        let json: Json<&RawValue> = row.try_get(index)?;
        Ok(json.0.to_owned())
    }

    fn fetch_all(
        connection: &mut PgConnection,
        sql: String,
        arguments: PgArguments,
    ) -> BoxFuture<'_, Result<Vec<PgRow>, sqlx::Error>> {
        Box::pin(async move {
            sqlx::query_with(AssertSqlSafe(sql), arguments)
                .fetch_all(connection)
                .await
        })
    }
}
