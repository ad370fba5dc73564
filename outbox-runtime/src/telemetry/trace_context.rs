//! Where the trace context of envelopes and that of OpenTelemetry's spans meet.
//!
//! With the feature `opentelemetry` a span becomes a child of the context that its message carries,
//! and the events of a commit carry the context of the span that is current. Without it, and in a
//! program that has no OpenTelemetry layer, nothing here does anything: the strings travel as they
//! are.

#[cfg(feature = "opentelemetry")]
mod opentelemetry;

use tracing::Span;

use crate::domain::{MessageContext, TraceContext};

/// A trace context to be written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Current {
    pub(crate) traceparent: String,
    pub(crate) tracestate: Option<String>,
}

/// Makes the span, which nobody has entered yet, a child of that context.
pub(crate) fn follow(span: &Span, parent: TraceContext<'_>) {
    #[cfg(feature = "opentelemetry")]
    opentelemetry::follow(span, parent);
    #[cfg(not(feature = "opentelemetry"))]
    let _ = (span, parent);
}

/// Makes the span point at that context.
pub(crate) fn link(span: &Span, to: TraceContext<'_>) {
    #[cfg(feature = "opentelemetry")]
    opentelemetry::link(span, to);
    #[cfg(not(feature = "opentelemetry"))]
    let _ = (span, to);
}

/// The context of the current span, if it is to take the place of what `context` holds.
///
/// What the user has set stays. What came with a message gives way only to a span of the same trace,
/// which is then a later part of it: so a span that is current for another reason, such as the whole
/// program's, never takes events out of their trace.
pub(crate) fn in_place_of(context: &MessageContext) -> Option<Current> {
    if context.is_trace_set() {
        return None;
    }
    let current = current()?;
    let is_same = |inherited: TraceContext<'_>| {
        let id = |traceparent: &str| traceparent.get(3..35).map(str::to_owned);
        id(inherited.traceparent) == id(&current.traceparent)
    };
    context.trace().is_none_or(is_same).then_some(current)
}

fn current() -> Option<Current> {
    #[cfg(feature = "opentelemetry")]
    return opentelemetry::current();
    #[cfg(not(feature = "opentelemetry"))]
    None
}
