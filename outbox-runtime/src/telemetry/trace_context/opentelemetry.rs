use std::str::FromStr;

use opentelemetry::Context;
use opentelemetry::trace::{SpanContext, SpanId, TraceContextExt, TraceFlags, TraceId, TraceState};
use tracing::Span;
use tracing_opentelemetry::OpenTelemetrySpanExt;

use super::Current;
use crate::domain::TraceContext;

pub(super) fn follow(span: &Span, parent: TraceContext<'_>) {
    if let Some(parent) = read(parent) {
        // It fails where no layer wants the span, and there is nothing to do then.
        let _ = span.set_parent(Context::new().with_remote_span_context(parent));
    }
}

pub(super) fn link(span: &Span, to: TraceContext<'_>) {
    if let Some(to) = read(to) {
        span.add_link(to);
    }
}

pub(super) fn current() -> Option<Current> {
    let of_tracing = Span::current().context();
    let context = of_tracing.span().span_context().clone();
    if context.is_valid() {
        return Some(write(&context));
    }
    // A program may use OpenTelemetry's own interface, without `tracing`.
    let context = Context::current().span().span_context().clone();
    context.is_valid().then(|| write(&context))
}

/// Reads the part that all versions of a `traceparent` share.
fn read(trace: TraceContext<'_>) -> Option<SpanContext> {
    let part = |range| trace.traceparent.get(range);
    let state = trace.tracestate.map(TraceState::from_str);
    Some(SpanContext::new(
        TraceId::from_hex(part(3..35)?).ok()?,
        SpanId::from_hex(part(36..52)?).ok()?,
        TraceFlags::new(u8::from_str_radix(part(53..55)?, 16).ok()?),
        true,
        state.and_then(Result::ok).unwrap_or_default(),
    ))
}

/// Writes version 00.
fn write(context: &SpanContext) -> Current {
    let state = context.trace_state().header();
    Current {
        traceparent: format!(
            "00-{}-{}-{:02x}",
            context.trace_id(),
            context.span_id(),
            context.trace_flags().to_u8()
        ),
        tracestate: Some(state).filter(|state| !state.is_empty()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_context_is_written_as_it_was_read() {
        let trace = TraceContext {
            traceparent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
            tracestate: Some("rojo=1,congo=t61"),
        };
        let context = read(trace).unwrap();
        assert!(context.is_remote() && context.is_sampled());
        let written = write(&context);
        assert_eq!(written.traceparent, trace.traceparent);
        assert_eq!(written.tracestate.as_deref(), trace.tracestate);
    }

    #[test]
    fn a_later_version_is_continued_as_version_00() {
        let trace = TraceContext {
            traceparent: "cc-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00-more",
            tracestate: None,
        };
        let context = read(trace).unwrap();
        assert!(!context.is_sampled());
        assert_eq!(
            write(&context).traceparent,
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00"
        );
    }
}
