use sqlx::{Pool, Postgres};

use crate::store::{AdminStore, Error, TableMapping};

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
}
