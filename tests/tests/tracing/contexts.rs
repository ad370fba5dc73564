use outbox_runtime::broker::PublishError;
use outbox_runtime::prelude::*;
use outbox_tests::{
    Answer, Fixture, Postman, RecordingPublisher, RunningRelay, message, on_both_databases,
};

use super::recorder::{Recorded, install, spans_of};
use super::shop::{
    Billing, Failing, ShopDb, app, eventually, make_due, open_shop, place, placed, relay_options,
    stop, unique,
};

on_both_databases!(
    the_second_attempt_to_publish_after_a_restart_has_the_trace_of_the_first,
    the_second_attempt_to_handle_after_a_restart_has_the_trace_of_the_first,
    a_malformed_context_stays_in_its_message_and_goes_no_further,
    a_malformed_context_of_a_caller_is_left_out,
);

const TRACEPARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

/// What the spans of that name say of the attempt, how it ended, and the trace.
fn attempts(correlation_id: &str, name: &str) -> Vec<[Option<String>; 3]> {
    let fields = ["outbox.attempt", "error.type", "outbox.traceparent"];
    let of_span = |span: Recorded| fields.map(|field| span.field(field).map(str::to_owned));
    let spans = spans_of(correlation_id).into_iter();
    spans
        .filter(|span| span.name == name)
        .map(of_span)
        .collect()
}

fn said(attempt: &str, error: Option<&str>, traceparent: Option<&str>) -> [Option<String>; 3] {
    [Some(attempt), error, traceparent].map(|text| text.map(str::to_owned))
}

async fn the_second_attempt_to_publish_after_a_restart_has_the_trace_of_the_first<DB: ShopDb>(
    fixture: Fixture<DB>,
) {
    install();
    open_shop(&fixture).await;
    let correlation = unique::<DB>("published twice");
    let context = MessageContext::new()
        .correlation_id(&correlation)
        .traceparent(TRACEPARENT)
        .tracestate("vendor=1");
    place(&fixture, context, "o-1", "").await;
    let publisher = RecordingPublisher::new();
    publisher.judge(|_| Err(PublishError::permanent("refused")));
    let relay = RunningRelay::start_with(&fixture.outbox, &publisher, relay_options());
    let parked = "SELECT count(*) FROM outbox_parked";
    eventually(&fixture, parked, 1).await;
    relay.stop().await;

    publisher.accept();
    make_due(&fixture, "outbox_parked").await;
    let relay = RunningRelay::start_with(&fixture.outbox, &publisher, relay_options());
    publisher.wait_for(1).await;
    eventually(&fixture, parked, 0).await;
    relay.stop().await;
    let taken = &publisher.taken()[0].metadata;
    assert_eq!(taken.traceparent.as_deref(), Some(TRACEPARENT));
    assert_eq!(taken.tracestate.as_deref(), Some("vendor=1"));
    assert_eq!(
        attempts(&correlation, "publish"),
        [
            said("1", Some("permanent"), Some(TRACEPARENT)),
            said("2", None, Some(TRACEPARENT))
        ]
    );
}

async fn the_second_attempt_to_handle_after_a_restart_has_the_trace_of_the_first<DB: ShopDb>(
    fixture: Fixture<DB>,
) {
    install();
    open_shop(&fixture).await;
    let (billing, postman) = (Billing::default(), Postman::new());
    let start = || {
        app(&fixture, &billing)
            .subscriber(postman.clone())
            .without_relay()
    };
    let mut message = message(&placed("o-1", ""), "o-1", 1);
    message.metadata.correlation_id = unique::<DB>("handled twice");
    billing.fail(Failing::Plainly);
    let running = start().start().await.unwrap();
    let answer = postman.deliver(&message).await.unwrap();
    assert_eq!(answer, Answer::Acknowledged);
    let parked = "SELECT count(*) FROM inbox_parked";
    assert_eq!(fixture.number(parked).await, 1);
    stop(running).await;

    billing.fail(None);
    make_due(&fixture, "inbox_parked").await;
    let running = start().start().await.unwrap();
    eventually(&fixture, parked, 0).await;
    stop(running).await;
    let seen = billing.attempts();
    assert_eq!(seen.len(), 2);
    assert_eq!(seen[0].context, seen[1].context);
    let trace = |place: usize| {
        let metadata = &seen[place].metadata;
        (metadata.traceparent.clone(), metadata.tracestate.clone())
    };
    let sent = (
        message.metadata.traceparent.clone(),
        message.metadata.tracestate.clone(),
    );
    assert_eq!((trace(0), trace(1)), (sent.clone(), sent));
    assert_eq!(
        attempts(&message.metadata.correlation_id, "handle"),
        [
            said("1", Some("transient"), Some(TRACEPARENT)),
            said("2", None, Some(TRACEPARENT))
        ]
    );
    // Without a layer of OpenTelemetry the strings travel on as they came.
    let raised = "SELECT traceparent || ' ' || tracestate FROM outbox_message";
    let expected = format!("{TRACEPARENT} vendor=1");
    assert_eq!(fixture.texts(raised).await, [expected]);
}

async fn a_malformed_context_stays_in_its_message_and_goes_no_further<DB: ShopDb>(
    fixture: Fixture<DB>,
) {
    install();
    open_shop(&fixture).await;
    let (billing, postman) = (Billing::default(), Postman::new());
    let app = app(&fixture, &billing).subscriber(postman.clone());
    let running = app.without_relay().start().await.unwrap();
    let mut message = message(&placed("o-1", ""), "o-1", 1);
    message.metadata.correlation_id = unique::<DB>("malformed");
    let malformed = format!("{TRACEPARENT}-{}", "é".repeat(300));
    message.metadata.traceparent = Some(malformed.clone());
    billing.fail(Failing::Plainly);
    postman.deliver(&message).await.unwrap();
    let kept = "SELECT traceparent FROM inbox_parked";
    assert_eq!(fixture.texts(kept).await, [malformed]);

    billing.fail(None);
    make_due(&fixture, "inbox_parked").await;
    eventually(&fixture, "SELECT count(*) FROM invoices", 1).await;
    stop(running).await;
    let without =
        "SELECT count(*) FROM outbox_message WHERE traceparent IS NULL AND tracestate IS NULL";
    assert_eq!(fixture.number(without).await, 1);
    assert_eq!(
        attempts(&message.metadata.correlation_id, "handle"),
        [said("1", Some("transient"), None), said("2", None, None)]
    );
}

async fn a_malformed_context_of_a_caller_is_left_out<DB: ShopDb>(fixture: Fixture<DB>) {
    install();
    open_shop(&fixture).await;
    let context = MessageContext::new()
        .traceparent("00-\u{0}-".repeat(300))
        .tracestate("vendor=1");
    place(&fixture, context, "o-1", "").await;
    let without =
        "SELECT count(*) FROM outbox_message WHERE traceparent IS NULL AND tracestate IS NULL";
    assert_eq!(fixture.number(without).await, 1);
}
