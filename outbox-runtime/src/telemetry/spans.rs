//! The spans: one for each commit, each message that is published, and each attempt to handle one.
//!
//! Names and values follow OpenTelemetry's
//! [conventions for messaging spans](https://opentelemetry.io/docs/specs/semconv/messaging/messaging-spans/),
//! as of version 1.41, where they have a word for the thing; what they have none for begins with
//! `outbox.`. The event's type has its name from the
//! [conventions for CloudEvents](https://opentelemetry.io/docs/specs/semconv/cloudevents/cloudevents-spans/).
//! Two things differ, and the book's page on tracing says why: a commit is one span, however many
//! events it creates, and the context that a message carries is the parent of what is done with it.
//!
//! No payload and no text of an error is ever a field. A span that nobody wants costs the look at a
//! flag: its fields are not even computed.

use tracing::{Span, field, info_span};

use super::trace_context;
use crate::domain::{MessageId, Metadata, TraceContext};

/// The one event that a commit writes, or the aggregate that it is about.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Subject<'a> {
    pub(crate) message_id: Option<MessageId>,
    pub(crate) event_type: Option<&'a str>,
    /// Type and id.
    pub(crate) aggregate: Option<(&'a str, &'a str)>,
}

/// The commit of a unit of work that writes so many events.
pub(crate) fn commit(events: usize, correlation_id: &str, subject: Subject<'_>) -> Span {
    let is_known = !correlation_id.is_empty();
    info_span!(
        "commit",
        otel.kind = if events > 0 { "producer" } else { "internal" },
        otel.status_code = field::Empty,
        error.type = field::Empty,
        messaging.system = "outbox",
        messaging.operation.name = "commit",
        messaging.operation.type = (events > 0).then_some("create"),
        messaging.batch.message_count = (events != 1).then_some(events),
        messaging.message.id = subject.message_id.map(field::display),
        messaging.message.conversation_id = is_known.then_some(correlation_id),
        cloudevents.event_type = subject.event_type,
        outbox.aggregate.type = subject.aggregate.map(|(kind, _)| kind),
        outbox.aggregate.id = subject.aggregate.map(|(_, id)| id),
    )
}

/// An attempt to publish a message, in the trace that the message carries.
pub(crate) fn publish(metadata: &Metadata, attempt: u32) -> Span {
    let aggregate = metadata.aggregate.as_ref();
    let span = info_span!(
        "publish",
        otel.name = format_args!("publish {}", metadata.event_type),
        otel.kind = "client",
        otel.status_code = field::Empty,
        error.type = field::Empty,
        messaging.system = "outbox",
        messaging.operation.name = "publish",
        messaging.operation.type = "send",
        messaging.message.id = %metadata.message_id,
        messaging.message.conversation_id = metadata.correlation_id,
        cloudevents.event_type = metadata.event_type,
        outbox.aggregate.type = aggregate.map(|aggregate| &*aggregate.aggregate_type),
        outbox.aggregate.id = aggregate.map(|aggregate| &*aggregate.aggregate_id),
        outbox.attempt = attempt,
        outbox.traceparent = TraceContext::of(metadata).map(|trace| trace.traceparent),
    );
    follow(&span, metadata);
    span
}

/// A call to the publisher with several messages: what an adapter does in it belongs to all of them.
pub(crate) fn publish_batch<'a>(messages: impl ExactSizeIterator<Item = &'a Metadata>) -> Span {
    let span = info_span!(
        "publish_batch",
        otel.kind = "client",
        messaging.system = "outbox",
        messaging.operation.name = "publish",
        messaging.operation.type = "send",
        messaging.batch.message_count = messages.len(),
    );
    if !span.is_disabled() {
        for trace in messages.filter_map(TraceContext::of) {
            trace_context::link(&span, trace);
        }
    }
    span
}

/// An attempt of a consumer to handle a message, in the trace that the message carries.
pub(crate) fn handle(metadata: &Metadata, consumer: &str, attempt: u32) -> Span {
    let aggregate = metadata.aggregate.as_ref();
    let span = info_span!(
        "handle",
        otel.name = format_args!("handle {consumer}"),
        otel.kind = "consumer",
        otel.status_code = field::Empty,
        error.type = field::Empty,
        messaging.system = "outbox",
        messaging.operation.name = "handle",
        messaging.operation.type = "process",
        messaging.message.id = %metadata.message_id,
        messaging.message.conversation_id = metadata.correlation_id,
        cloudevents.event_type = metadata.event_type,
        outbox.aggregate.type = aggregate.map(|aggregate| &*aggregate.aggregate_type),
        outbox.aggregate.id = aggregate.map(|aggregate| &*aggregate.aggregate_id),
        outbox.consumer = consumer,
        outbox.attempt = attempt,
        outbox.outcome = field::Empty,
        outbox.traceparent = TraceContext::of(metadata).map(|trace| trace.traceparent),
    );
    follow(&span, metadata);
    span
}

/// Says how an attempt to handle a message ended: a few fixed words.
pub(crate) fn outcome(span: &Span, outcome: &'static str) {
    span.record("outbox.outcome", outcome);
}

/// Says that what the span is about failed: a few fixed words.
pub(crate) fn failed(span: &Span, error_type: &'static str) {
    span.record("otel.status_code", "ERROR");
    span.record("error.type", error_type);
}

fn follow(span: &Span, metadata: &Metadata) {
    if !span.is_disabled()
        && let Some(trace) = TraceContext::of(metadata)
    {
        trace_context::follow(span, trace);
    }
}
