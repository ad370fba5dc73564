use std::env;

use async_trait::async_trait;
use sqlx::postgres::{PgConnectOptions, PgPoolOptions};
use sqlx::{AssertSqlSafe, ConnectOptions, Connection, Pool, Postgres};
use uuid::Uuid;

use crate::{Fixture, TestDatabase};

/// A fresh database on the server of `OUTBOX_TEST_POSTGRES_URL`; nothing without the variable.
///
/// # Panics
/// If the variable is missing although `OUTBOX_TEST_REQUIRE_ALL` is set.
pub async fn postgres() -> Option<Fixture<Postgres>> {
    let Ok(server) = env::var("OUTBOX_TEST_POSTGRES_URL") else {
        assert!(
            env::var_os("OUTBOX_TEST_REQUIRE_ALL").is_none(),
            "OUTBOX_TEST_POSTGRES_URL is not set; `cargo xtask test` sets it"
        );
        eprintln!("skipped: OUTBOX_TEST_POSTGRES_URL is not set; `cargo xtask test` sets it");
        return None;
    };
    let options: PgConnectOptions = server.parse().expect("a PostgreSQL URL");
    let name = format!("outbox_test_{}", Uuid::new_v4().simple());
    let mut connection = options.connect().await.expect("the server answers");
    sqlx::query(AssertSqlSafe(format!("CREATE DATABASE {name}")))
        .execute(&mut connection)
        .await
        .expect("a database of the test's own");
    connection.close().await.expect("the connection closes");
    let options = options.database(&name);
    let url = options.to_url_lossy().to_string();
    let pool = PgPoolOptions::new()
        .max_connections(40)
        .connect_with(options)
        .await
        .expect("the database answers");
    Some(Fixture::new(pool, url, None).await)
}

#[async_trait]
impl TestDatabase for Postgres {
    const SLOW_PARKING: &'static str = "
        CREATE FUNCTION slowly() RETURNS trigger LANGUAGE plpgsql
        AS $$ BEGIN PERFORM pg_sleep(0.005); RETURN NEW; END $$;
        CREATE TRIGGER slowly BEFORE INSERT ON outbox_parked
        FOR EACH ROW EXECUTE FUNCTION slowly()";

    async fn run_sql(pool: &Pool<Self>, sql: &str) {
        sqlx::raw_sql(AssertSqlSafe(sql))
            .execute(pool)
            .await
            .expect(sql);
    }

    async fn number(pool: &Pool<Self>, sql: &str) -> i64 {
        sqlx::query_scalar(AssertSqlSafe(sql))
            .fetch_one(pool)
            .await
            .expect(sql)
    }

    async fn texts(pool: &Pool<Self>, sql: &str) -> Vec<String> {
        sqlx::query_scalar(AssertSqlSafe(sql))
            .fetch_all(pool)
            .await
            .expect(sql)
    }
}
