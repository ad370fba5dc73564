use sqlx::{AssertSqlSafe, Pool, Sqlite};

use crate::store::{AdminStore, Error, Names, ParkedCount, TableMapping};

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

    async fn parked_counts(
        pool: &Pool<Self>,
        names: &Names,
        most: u32,
    ) -> Result<Vec<ParkedCount>, Error> {
        let sql = names.render(include_str!("sql/parked_counts.sql"));
        let counts: Vec<(String, String, String, i64)> = sqlx::query_as(AssertSqlSafe(sql))
            .bind(i64::from(most))
            .fetch_all(pool)
            .await
            .map_err(Error::database("counting parked messages"))?;
        let counts = counts.into_iter();
        Ok(counts
            .map(|(part, consumer, state, messages)| ParkedCount {
                consumer: (part == "inbox").then_some(consumer),
                state,
                messages: messages.unsigned_abs(),
            })
            .collect())
    }
}
