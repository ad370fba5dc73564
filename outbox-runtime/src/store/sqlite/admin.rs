use sqlx::{Pool, Sqlite};

use crate::store::{AdminStore, Error, TableMapping};

impl AdminStore for Sqlite {
    async fn columns(pool: &Pool<Self>, table: &TableMapping) -> Result<Vec<String>, Error> {
        sqlx::query_scalar(include_str!("sql/table_columns.sql"))
            .bind(table.table())
            .bind(table.schema())
            .fetch_all(pool)
            .await
            .map_err(Error::database(
                "reading the columns of an aggregate's table",
            ))
    }

    fn is_same_column(a: &str, b: &str) -> bool {
        a.eq_ignore_ascii_case(b)
    }
}
