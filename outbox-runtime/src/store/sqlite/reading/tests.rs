use sqlx::sqlite::{SqlitePool, SqlitePoolOptions};

use super::*;
use crate::store::{RelayStore, ShardSet};
use crate::unit_of_work::Outbox;

async fn log() -> SqlitePool {
    let pool = SqlitePoolOptions::new()
        .max_connections(1)
        .connect("sqlite::memory:")
        .await
        .unwrap();
    Outbox::new("reading", pool.clone())
        .migrate()
        .await
        .unwrap();
    pool
}

const INSERT: &str = "INSERT INTO outbox_message (
        shard, event_type, schema_version, aggregate_type, aggregate_id, sequence, correlation_id,
        causation_id, producer, traceparent, tracestate, headers, payload
    ) VALUES ";

async fn insert(pool: &SqlitePool, rows: &str) {
    let sql = format!("{INSERT} {rows}");
    sqlx::query(AssertSqlSafe(sql)).execute(pool).await.unwrap();
}

fn request(bytes: usize) -> LogRequest<'static> {
    LogRequest {
        after: 0,
        up_to: i64::MAX,
        gaps: &[],
        limit: 100,
        bytes,
        first_is_free: false,
        shards: ShardSet::ALL,
        with_snapshot: false,
        measured: false,
    }
}

/// Reads in both ways: together, where that is possible, and one by one.
async fn read_both(pool: &SqlitePool, bytes: usize) -> (Option<LogRead>, LogRead) {
    let queries = sqlx::Sqlite::relay_queries(&Default::default());
    let mut connection = pool.acquire().await.unwrap();
    let request = request(bytes);
    let together = read_together(&mut connection, &queries, &request).await;
    let alone = read_one_by_one(&mut connection, &queries, &request).await;
    (together, alone.unwrap())
}

#[tokio::test]
async fn what_is_read_together_is_what_is_read_one_by_one() {
    let pool = log().await;
    let (together, alone) = read_both(&pool, 1_000).await;
    let together = together.expect("an empty log takes no second read");
    assert!(together.rows.is_empty() && alone.rows.is_empty());
    insert(
        &pool,
        r#"(7, 'a"b\c', 3, 'Żółw', char(1, 9, 10, 34, 92, 127, 8232, 128034) || 'x', 5, 'k', 'c',
            'p', 't', 's', '{"h":"\"\\"}', '{"text":"a \"quoted\" \u0000 \\ line"}'),
           (NULL, 'bare', 1, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, '[1, 2.50]'),
           (0, 'far', 1, 'A', '-1', 9223372036854775807, '', '', '', '', '', '{}', 'null')"#,
    )
    .await;
    let (together, alone) = read_both(&pool, 1_000).await;
    let together = together.unwrap();
    assert_eq!(together.rows.len(), 3);
    assert_eq!(format!("{together:?}"), format!("{alone:?}"));
}

#[tokio::test]
async fn rows_that_are_none_of_ours_or_too_large_are_read_one_by_one() {
    let pool = log().await;
    insert(
        &pool,
        "(1, 'a', 1, 'A', '1', 1, NULL, NULL, NULL, NULL, NULL, NULL, '1234567890')",
    )
    .await;
    let (together, alone) = read_both(&pool, 9).await;
    assert!(together.is_none());
    assert_eq!(alone.no_room_for, Some(10));
    assert!(read_both(&pool, 10).await.0.is_some());
    for foreign in [
        "(1, 'a', 1, 'A', X'00FF', 1, NULL, NULL, NULL, NULL, NULL, NULL, '1')",
        "(1, 'a', 1, 'A', CAST(X'FF' AS TEXT), 1, NULL, NULL, NULL, NULL, NULL, NULL, '1')",
        "(1, 'a', 1, 'A', '1', 'one', NULL, NULL, NULL, NULL, NULL, NULL, '1')",
        "(1, 'a', 5000000000, 'A', '1', 1, NULL, NULL, NULL, NULL, NULL, NULL, '1')",
    ] {
        insert(&pool, foreign).await;
        let (together, alone) = read_both(&pool, 1_000).await;
        assert!(together.is_none(), "{foreign}");
        assert_eq!(alone.rows.len(), 2);
        sqlx::query("DELETE FROM outbox_message WHERE id > 1")
            .execute(&pool)
            .await
            .unwrap();
    }
}
