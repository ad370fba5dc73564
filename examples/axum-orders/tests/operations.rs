//! What operators see of the service while it starts, works and stops.

#![allow(clippy::unwrap_used, clippy::panic)]

use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::http::{Request, StatusCode};
use axum_orders::{TABLES, operations, router};
use http_body_util::BodyExt;
use outbox_runtime::prelude::*;
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePool};
use tower::ServiceExt;

async fn answer(router: &Router, request: Request<Body>) -> (StatusCode, String) {
    let response = router.clone().oneshot(request).await.unwrap();
    let status = response.status();
    let body = response.into_body().collect().await.unwrap().to_bytes();
    (status, String::from_utf8(body.to_vec()).unwrap())
}

async fn get(router: &Router, path: &str) -> (StatusCode, String) {
    answer(router, Request::get(path).body(Body::empty()).unwrap()).await
}

#[tokio::test(flavor = "multi_thread")]
async fn health_and_metrics_follow_the_service() {
    let folder = tempfile::tempdir().unwrap();
    let options = SqliteConnectOptions::new()
        .filename(folder.path().join("orders.db"))
        .create_if_missing(true)
        .journal_mode(SqliteJournalMode::Wal);
    let pool = SqlitePool::connect_with(options).await.unwrap();
    sqlx::raw_sql(TABLES).execute(&pool).await.unwrap();
    let outbox = Outbox::new("axum-orders", pool);
    outbox.migrate().await.unwrap();
    let metrics = operations::collect_metrics().unwrap();
    let app = App::new(outbox.clone()).broker(InProcessBroker::new());
    let operators = operations::router(app.health(), metrics);

    let (status, body) = get(&operators, "/health/ready").await;
    assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE, "{body}");
    assert_eq!(
        body,
        r#"{"status":"not_ready","reasons":["the app has not started yet"]}"#
    );
    let running = app.start().await.unwrap();
    running.started().await;
    let (status, body) = get(&operators, "/health/ready").await;
    assert_eq!((status, &*body), (StatusCode::OK, r#"{"status":"ready"}"#));
    let (status, body) = get(&operators, "/health/live").await;
    assert_eq!((status, &*body), (StatusCode::OK, r#"{"status":"alive"}"#));

    let place = Request::post("/orders")
        .header("content-type", "application/json")
        .body(Body::from(r#"{"id":"o1","total_cents":500}"#))
        .unwrap();
    assert_eq!(answer(&router(outbox), place).await.0, StatusCode::CREATED);
    let published = "outbox_relay_published_total{service=\"axum-orders\"} 1\n";
    let shown = async {
        loop {
            let (status, text) = get(&operators, "/metrics").await;
            assert_eq!(status, StatusCode::OK);
            if text.contains(published) && text.contains("outbox_relay_parked_messages") {
                return text;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    let text = tokio::time::timeout(Duration::from_secs(60), shown).await;
    let text = text.unwrap();
    for line in [
        "# TYPE outbox_relay_published_total counter",
        "# TYPE outbox_unit_of_work_commit_duration_seconds histogram",
        "outbox_unit_of_work_commit_duration_seconds_count{service=\"axum-orders\",outcome=\"committed\"} 2",
        "outbox_inbox_handler_duration_seconds_count{service=\"axum-orders\",\
         consumer=\"shop.acknowledge-order\",event_type=\"shop.order-placed\",outcome=\"committed\"} 1",
    ] {
        assert!(text.contains(line), "no {line} in:\n{text}");
    }

    running.shutdown().await.unwrap();
    let (status, _) = get(&operators, "/health/ready").await;
    assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE);
    let (status, _) = get(&operators, "/health/live").await;
    assert_eq!(status, StatusCode::OK);
}
