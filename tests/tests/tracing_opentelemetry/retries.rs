use outbox_runtime::broker::PublishError;
use outbox_runtime::prelude::*;
use outbox_tests::{
    Fixture, Postman, RecordingPublisher, RunningRelay, message, on_both_databases,
};

use super::exported::{Exported, install, of_process};
use super::shop::{
    Billing, Failing, ShopDb, app, eventually, make_due, open_shop, place, placed, relay_options,
    stop, unique, until,
};

on_both_databases!(
    both_attempts_to_publish_are_children_of_the_commit,
    both_attempts_to_handle_are_children_of_what_created_the_message,
);

fn attempts(correlation_id: &str, name: &str) -> Vec<Exported> {
    let mut spans = of_process(correlation_id);
    spans.retain(|span| span.0.name.starts_with(name));
    spans
}

/// That there were two, of which the first failed.
fn assert_failed_once(attempts: &[Exported]) {
    let numbers: Vec<_> = attempts
        .iter()
        .map(|span| span.attribute("outbox.attempt").unwrap())
        .collect();
    assert_eq!(numbers, ["1", "2"]);
    use opentelemetry::trace::Status;
    assert!(matches!(attempts[0].0.status, Status::Error { .. }));
    assert_eq!(attempts[1].0.status, Status::Unset);
}

async fn both_attempts_to_publish_are_children_of_the_commit<DB: ShopDb>(fixture: Fixture<DB>) {
    install();
    open_shop(&fixture).await;
    let correlation = unique::<DB>("published twice");
    let context = MessageContext::new().correlation_id(&correlation);
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
    eventually(&fixture, parked, 0).await;
    relay.stop().await;
    let commit = &attempts(&correlation, "commit")[0];
    let published = attempts(&correlation, "publish");
    assert_failed_once(&published);
    for span in &published {
        assert_eq!(span.0.parent_span_id, commit.id());
        assert_eq!(span.trace_id(), commit.trace_id());
    }
    let taken = &publisher.taken()[0].metadata;
    assert_eq!(taken.traceparent, Some(commit.traceparent()));
}

async fn both_attempts_to_handle_are_children_of_what_created_the_message<DB: ShopDb>(
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
    let correlation = &message.metadata.correlation_id;
    billing.fail(Failing::Plainly);
    let running = start().start().await.unwrap();
    postman.deliver(&message).await.unwrap();
    stop(running).await;

    billing.fail(None);
    make_due(&fixture, "inbox_parked").await;
    let running = start().start().await.unwrap();
    until(|| attempts(correlation, "handle").len() == 2).await;
    stop(running).await;
    let handled = attempts(correlation, "handle");
    assert_failed_once(&handled);
    let traceparent = message.metadata.traceparent.clone().unwrap();
    for span in &handled {
        assert_eq!(span.0.parent_span_id.to_string(), traceparent[36..52]);
        assert_eq!(span.trace_id(), traceparent[3..35]);
    }
    // What the second attempt raised belongs to the second attempt, in the same trace.
    let commit = &attempts(correlation, "commit")[0];
    assert_eq!(commit.0.parent_span_id, handled[1].id());
    let raised = fixture
        .texts("SELECT traceparent FROM outbox_message")
        .await;
    assert_eq!(raised, [commit.traceparent()]);
}
