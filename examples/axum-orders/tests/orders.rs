//! Drives the routes without a socket.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic)]

use std::time::Duration;

use axum::body::Body;
use axum::http::{Request, StatusCode};
use axum_orders::{TABLES, router};
use http_body_util::BodyExt;
use outbox_runtime::prelude::*;
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePool};
use tokio_util::sync::CancellationToken;
use tower::ServiceExt;

async fn answer(router: &axum::Router, request: Request<Body>) -> (StatusCode, String) {
    let response = router.clone().oneshot(request).await.unwrap();
    let status = response.status();
    let body = response.into_body().collect().await.unwrap().to_bytes();
    (status, String::from_utf8(body.to_vec()).unwrap())
}

fn place(body: &'static str) -> Request<Body> {
    Request::post("/orders")
        .header("content-type", "application/json")
        .body(Body::from(body))
        .unwrap()
}

fn show(id: &str) -> Request<Body> {
    Request::get(format!("/orders/{id}"))
        .body(Body::empty())
        .unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_order_is_placed_once_and_acknowledged() {
    let folder = tempfile::tempdir().unwrap();
    let options = SqliteConnectOptions::new()
        .filename(folder.path().join("orders.db"))
        .create_if_missing(true)
        .journal_mode(SqliteJournalMode::Wal);
    let pool = SqlitePool::connect_with(options).await.unwrap();
    sqlx::raw_sql(TABLES).execute(&pool).await.unwrap();
    let outbox = Outbox::new("axum-orders", pool.clone());
    outbox.migrate().await.unwrap();
    let router = router(outbox.clone());

    let (status, _) = answer(&router, show("o1")).await;
    assert_eq!(status, StatusCode::NOT_FOUND);

    // Several at once, each on a task of its own: exactly one wins.
    let tries = (0..8).map(|_| {
        let router = router.clone();
        tokio::spawn(async move {
            answer(&router, place(r#"{"id":"o1","total_cents":500}"#))
                .await
                .0
        })
    });
    let mut statuses = Vec::new();
    for one in tries.collect::<Vec<_>>() {
        statuses.push(one.await.unwrap());
    }
    let created = statuses
        .iter()
        .filter(|status| **status == StatusCode::CREATED)
        .count();
    assert_eq!(created, 1, "{statuses:?}");
    assert!(
        statuses
            .iter()
            .all(|s| [StatusCode::CREATED, StatusCode::CONFLICT].contains(s))
    );
    let events: i64 = sqlx::query_scalar("SELECT count(*) FROM outbox_message")
        .fetch_one(&pool)
        .await
        .unwrap();
    assert_eq!(events, 1);

    let (status, body) = answer(&router, place(r#"{"id":"","total_cents":500}"#)).await;
    assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY, "{body}");

    let stop = CancellationToken::new();
    let app = tokio::spawn(
        App::new(outbox)
            .broker(InProcessBroker::new())
            .run_until(stop.clone().cancelled_owned()),
    );
    let acknowledged = async {
        loop {
            let (status, body) = answer(&router, show("o1")).await;
            assert_eq!(status, StatusCode::OK);
            let order: serde_json::Value = serde_json::from_str(&body).unwrap();
            if order["acknowledged"] == true {
                return;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), acknowledged)
        .await
        .unwrap();
    stop.cancel();
    app.await.unwrap().unwrap();
}
