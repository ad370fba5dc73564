use opentelemetry::trace::{SpanId, SpanKind};
use outbox_runtime::prelude::*;
use outbox_tests::{
    Fixture, Postman, RecordingPublisher, RunningRelay, message, on_both_databases, quick,
};
use tracing::{Instrument, info_span};

use super::exported::{Exported, ended, install, of_process};
use super::shop::{Billing, ShopDb, app, open_shop, place, placed, stop, unique, until};

on_both_databases!(
    a_trace_goes_from_a_commit_through_a_handler_to_the_next_message,
    a_context_of_the_users_own_is_what_the_messages_carry,
    a_malformed_context_starts_a_new_trace,
    a_batch_is_linked_to_all_of_its_messages,
);

const TRACEPARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

/// Finds the one span of that kind and of that event.
fn one(spans: &[Exported], name: &str, event_type: &str) -> Exported {
    let mut found = spans.iter().filter(|span| {
        span.0.name.starts_with(name)
            && span.attribute("cloudevents.event_type").as_deref() == Some(event_type)
    });
    let (Some(span), None) = (found.next(), found.next()) else {
        panic!("not one {name} of {event_type} in {spans:#?}");
    };
    span.clone()
}

async fn traceparents<DB: ShopDb>(fixture: &Fixture<DB>) -> Vec<String> {
    fixture
        .texts("SELECT traceparent FROM outbox_message ORDER BY id")
        .await
}

async fn a_trace_goes_from_a_commit_through_a_handler_to_the_next_message<DB: ShopDb>(
    fixture: Fixture<DB>,
) {
    install();
    open_shop(&fixture).await;
    let broker = InProcessBroker::new();
    let app = app(&fixture, &Billing::default()).broker(broker);
    let running = app.start().await.unwrap();
    let correlation = unique::<DB>("a trace");
    let context = || MessageContext::new().correlation_id(&correlation);
    let request = info_span!("request", correlation);
    place(&fixture, context(), "o-1", "")
        .instrument(request)
        .await;
    until(|| of_process(&correlation).len() == 5).await;
    stop(running).await;

    let spans = of_process(&correlation);
    let request = ended(|span| span.attribute("correlation").as_deref() == Some(&correlation));
    let commit = one(&spans, "commit", "order.placed");
    let publish = one(&spans, "publish order.placed", "order.placed");
    let handle = one(&spans, "handle billing.invoice", "order.placed");
    let second_commit = one(&spans, "commit", "invoice.issued");
    let second_publish = one(&spans, "publish invoice.issued", "invoice.issued");
    let parents = [
        (&commit, request[0].id(), SpanKind::Producer),
        (&publish, commit.id(), SpanKind::Client),
        (&handle, commit.id(), SpanKind::Consumer),
        (&second_commit, handle.id(), SpanKind::Producer),
        (&second_publish, second_commit.id(), SpanKind::Client),
    ];
    for (span, parent, kind) in parents {
        assert_eq!(span.0.parent_span_id, parent, "{:?}", span.0);
        assert_eq!(span.0.span_kind, kind);
        assert_eq!(span.trace_id(), request[0].trace_id());
    }
    assert_eq!(
        traceparents(&fixture).await,
        [commit.traceparent(), second_commit.traceparent()]
    );
}

async fn a_context_of_the_users_own_is_what_the_messages_carry<DB: ShopDb>(fixture: Fixture<DB>) {
    install();
    open_shop(&fixture).await;
    let (billing, postman) = (Billing::default(), Postman::new());
    let running = app(&fixture, &billing).subscriber(postman.clone());
    let running = running.without_relay().start().await.unwrap();
    let correlation = unique::<DB>("own context");
    let context = MessageContext::new()
        .correlation_id(&correlation)
        .traceparent(TRACEPARENT)
        .tracestate("vendor=1");
    place(&fixture, context, "o-1", "")
        .instrument(info_span!("request"))
        .await;
    assert_eq!(traceparents(&fixture).await, [TRACEPARENT]);

    let mut message = message(&placed("o-2", ""), "o-2", 1);
    message.metadata.correlation_id = correlation.clone();
    postman.deliver(&message).await.unwrap();
    until(|| of_process(&correlation).len() == 3).await;
    stop(running).await;
    let handle = one(&of_process(&correlation), "handle", "order.placed");
    assert_eq!(handle.trace_id(), TRACEPARENT[3..35]);
    assert_eq!(handle.0.parent_span_id.to_string(), TRACEPARENT[36..52]);
    assert!(handle.0.parent_span_is_remote);
    // A vendor's state goes on with the trace.
    let raised = "SELECT tracestate FROM outbox_message WHERE causation_id IS NOT NULL";
    assert_eq!(fixture.texts(raised).await, ["vendor=1"]);
}

async fn a_malformed_context_starts_a_new_trace<DB: ShopDb>(fixture: Fixture<DB>) {
    install();
    open_shop(&fixture).await;
    let postman = Postman::new();
    let app = app(&fixture, &Billing::default()).subscriber(postman.clone());
    let running = app.without_relay().start().await.unwrap();
    let mut message = message(&placed("o-1", ""), "o-1", 1);
    message.metadata.correlation_id = unique::<DB>("malformed");
    message.metadata.traceparent = Some(TRACEPARENT.replace("-01", "-zz"));
    postman.deliver(&message).await.unwrap();
    let spans = || of_process(&message.metadata.correlation_id);
    until(|| spans().len() == 2).await;
    stop(running).await;
    let handle = one(&spans(), "handle", "order.placed");
    let commit = one(&spans(), "commit", "invoice.issued");
    assert_eq!(handle.0.parent_span_id, SpanId::INVALID);
    assert_ne!(handle.trace_id(), TRACEPARENT[3..35]);
    assert_eq!(commit.0.parent_span_id, handle.id());
    assert_eq!(traceparents(&fixture).await, [commit.traceparent()]);
}

async fn a_batch_is_linked_to_all_of_its_messages<DB: ShopDb>(fixture: Fixture<DB>) {
    install();
    open_shop(&fixture).await;
    let correlation = unique::<DB>("a batch");
    for id in ["a", "b", "c"] {
        let context = MessageContext::new().correlation_id(&correlation);
        place(&fixture, context, id, "").await;
    }
    let publisher = RecordingPublisher::new();
    let relay = RunningRelay::start_with(&fixture.outbox, &publisher, quick());
    publisher.wait_for(3).await;
    until(|| of_process(&correlation).len() == 6).await;
    relay.stop().await;
    assert_eq!(publisher.calls(), 1);
    let commits: Vec<_> = of_process(&correlation)
        .into_iter()
        .filter(|span| span.0.name == "commit")
        .collect();
    let is_ours = |span: &Exported| {
        let links = &span.0.links.links;
        span.0.name == "publish_batch"
            && links
                .iter()
                .any(|link| link.span_context == remote(&commits[0]))
    };
    let batches = ended(is_ours);
    assert_eq!(batches.len(), 1);
    let count = batches[0].attribute("messaging.batch.message_count");
    assert_eq!(count.as_deref(), Some("3"));
    let links = batches[0].0.links.links.iter();
    let linked: Vec<_> = links.map(|link| link.span_context.clone()).collect();
    assert_eq!(linked, commits.iter().map(remote).collect::<Vec<_>>());
}

/// The context of a span as it comes out of an envelope.
fn remote(span: &Exported) -> opentelemetry::trace::SpanContext {
    let context = &span.0.span_context;
    opentelemetry::trace::SpanContext::new(
        context.trace_id(),
        context.span_id(),
        context.trace_flags(),
        true,
        context.trace_state().clone(),
    )
}
