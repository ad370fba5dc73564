//! Listings of the page on tracing.

use std::sync::{Arc, Mutex};

use book_listings::SqliteFile;
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::trace::SpanData;
use outbox_runtime::prelude::*;

// ANCHOR: wiring
use opentelemetry::trace::TracerProvider;
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::{SdkTracerProvider, SpanExporter};
use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::layer::SubscriberExt;

/// Call it once, first of all. Shut the provider down at the end, so that the last spans go out.
fn trace_to(exporter: impl SpanExporter + 'static) -> SdkTracerProvider {
    let provider = SdkTracerProvider::builder()
        .with_resource(Resource::builder().with_service_name("ordering").build())
        .with_batch_exporter(exporter)
        .build();
    let layer = tracing_opentelemetry::layer().with_tracer(provider.tracer("ordering"));
    let subscriber = tracing_subscriber::registry()
        .with(LevelFilter::INFO)
        .with(layer);
    tracing::subscriber::set_global_default(subscriber).expect("nobody has set another one");
    provider
}
// ANCHOR_END: wiring

#[domain_event(version = 1)]
struct OrderPlaced {
    order_id: i64,
}

// ANCHOR: request
#[tracing::instrument(skip_all)]
async fn place_order(
    outbox: &Outbox<sqlx::Sqlite>,
    order_id: i64,
) -> Result<(), outbox_runtime::Error> {
    let mut uow = outbox.begin(MessageContext::new()).await?;
    uow.raise(OrderPlaced { order_id })?;
    uow.commit().await // a span `commit` in the span `place_order`; the event carries its context
}
// ANCHOR_END: request

// ANCHOR: by_hand
/// The headers of a request, taken on as they are.
fn context_of(traceparent: &str, tracestate: &str) -> MessageContext {
    MessageContext::new()
        .traceparent(traceparent)
        .tracestate(tracestate)
}
// ANCHOR_END: by_hand

#[derive(Debug, Clone, Default)]
struct Kept(Arc<Mutex<Vec<SpanData>>>);

impl SpanExporter for Kept {
    async fn export(&self, mut batch: Vec<SpanData>) -> OTelSdkResult {
        self.0.lock().unwrap().append(&mut batch);
        Ok(())
    }
}

#[tokio::test]
async fn an_event_carries_the_context_of_its_commit() {
    let kept = Kept::default();
    let provider = trace_to(kept.clone());
    let database = SqliteFile::with_tables("").await;
    let outbox = Outbox::new("ordering", database.pool.clone());
    outbox.migrate().await.unwrap();
    place_order(&outbox, 7).await.unwrap();
    let carried: String = sqlx::query_scalar("SELECT traceparent FROM outbox_message")
        .fetch_one(&database.pool)
        .await
        .unwrap();
    database.pool.close().await;
    provider.shutdown().unwrap();

    let spans = kept.0.lock().unwrap();
    let request = spans.iter().find(|span| span.name == "place_order");
    let request = &request.unwrap().span_context;
    let mut commits = spans.iter().filter(|span| span.name == "commit");
    let commit = commits.find(|span| span.parent_span_id == request.span_id());
    let commit = &commit.unwrap().span_context;
    assert_eq!(
        carried,
        format!("00-{}-{}-01", commit.trace_id(), commit.span_id())
    );
}

#[tokio::test]
async fn the_headers_of_a_request_are_taken_on() {
    let traceparent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    let database = SqliteFile::with_tables("").await;
    let outbox = Outbox::new("ordering", database.pool.clone());
    outbox.migrate().await.unwrap();
    let context = context_of(traceparent, "vendor=1");
    let mut uow = outbox.begin(context).await.unwrap();
    uow.raise(OrderPlaced { order_id: 7 }).unwrap();
    uow.commit().await.unwrap();
    let stored: (String, String) =
        sqlx::query_as("SELECT traceparent, tracestate FROM outbox_message")
            .fetch_one(&database.pool)
            .await
            .unwrap();
    assert_eq!(stored, (traceparent.to_owned(), "vendor=1".to_owned()));
}
