use sqlx::{AssertSqlSafe, Pool, Postgres};

use crate::store::{AdminStore, Error, Names, TableMapping};

impl AdminStore for Postgres {
    async fn columns(pool: &Pool<Self>, table: &TableMapping) -> Result<Vec<String>, Error> {
        sqlx::query_scalar(include_str!("sql/table_columns.sql"))
            .bind(table.quoted_table())
            .fetch_all(pool)
            .await
            .map_err(Error::database(
                "reading the columns of an aggregate's table",
            ))
    }

    fn is_same_column(a: &str, b: &str) -> bool {
        a == b
    }

    async fn recent_event_types(
        pool: &Pool<Self>,
        names: &Names,
        producer: &str,
    ) -> Result<Vec<String>, Error> {
        let sql = names.render(include_str!("sql/recent_event_types.sql"));
        sqlx::query_scalar(AssertSqlSafe(sql))
            .bind(producer)
            .fetch_all(pool)
            .await
            .map_err(Error::database("reading the names of recent events"))
    }
}
