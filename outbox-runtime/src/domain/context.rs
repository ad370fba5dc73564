use std::collections::BTreeMap;

use super::envelope::Metadata;
use super::trace::{TraceContext, is_traceparent, is_tracestate};

/// The longest correlation id, causation id or header name, in bytes.
const MAX_ID_BYTES: usize = 255;
/// The longest header value, in bytes.
const MAX_HEADER_BYTES: usize = 4096;

/// What the events of a unit of work inherit: correlation, causation, trace and headers.
///
/// Outside a handler you say what you know; without a correlation id the first message's own id
/// starts a new one. Inside a handler the context of the incoming message is already set.
///
/// With the feature `opentelemetry`, events carry the context of the span in which they are
/// committed, unless a [`traceparent`](Self::traceparent) is set here.
///
/// ```
/// use outbox_runtime::MessageContext;
///
/// let context = MessageContext::new()
///     .correlation_id("order-20250224-000123")
///     .header("tenant", "blue");
/// assert!(context.check().is_ok());
/// assert!(MessageContext::new().correlation_id("").check().is_err());
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MessageContext {
    pub(crate) correlation_id: Option<String>,
    pub(crate) causation_id: Option<String>,
    pub(crate) traceparent: Option<String>,
    pub(crate) tracestate: Option<String>,
    /// The trace context was set here, and is no message's.
    is_trace_set: bool,
    pub(crate) headers: BTreeMap<String, String>,
}

/// A context holds something that can't travel in an envelope.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ContextError {
    /// An id or a header's name is empty.
    #[error("the {field} is empty; leave it out or give it a value")]
    Empty {
        /// Which one.
        field: &'static str,
    },
    /// An id, a header's name or a header's value is too long.
    #[error("the {field} has {bytes} bytes; at most {limit} fit")]
    TooLong {
        /// Which one.
        field: &'static str,
        /// How long it is.
        bytes: usize,
        /// How long it may be.
        limit: usize,
    },
    /// A control character would break logs and protocols.
    #[error("the {field} holds a control character at byte {at}; remove it")]
    ControlCharacter {
        /// Which one.
        field: &'static str,
        /// Its place, from 0.
        at: usize,
    },
}

impl MessageContext {
    /// An empty context: a new correlation, caused by no message.
    pub fn new() -> Self {
        Self::default()
    }

    /// The context of what a handler raises: the message's correlation and trace, and the message as
    /// the cause.
    ///
    /// A trace context that is none by the W3C's rules ends here: it stays in its own message, and
    /// what is raised starts without.
    pub fn caused_by(metadata: &Metadata) -> Self {
        let trace = TraceContext::of(metadata);
        Self {
            correlation_id: Some(metadata.correlation_id.clone()),
            causation_id: Some(metadata.message_id.to_string()),
            traceparent: trace.map(|trace| trace.traceparent.to_owned()),
            tracestate: trace.and_then(|trace| trace.tracestate).map(str::to_owned),
            is_trace_set: false,
            headers: BTreeMap::new(),
        }
    }

    /// Sets what ties together all messages of one business process: 1 to 255 bytes of any text.
    #[must_use]
    pub fn correlation_id(mut self, id: impl Into<String>) -> Self {
        self.correlation_id = Some(id.into());
        self
    }

    /// Sets the message or command that led to this unit of work: 1 to 255 bytes of any text.
    #[must_use]
    pub fn causation_id(mut self, id: impl Into<String>) -> Self {
        self.causation_id = Some(id.into());
        self
    }

    /// Sets the `traceparent` of the [W3C trace context](https://www.w3.org/TR/trace-context/).
    ///
    /// A value that is none is left out, as the W3C says, since it may come straight from somebody
    /// else's request, which must not fail for it.
    ///
    /// ```
    /// use outbox_runtime::MessageContext;
    ///
    /// let nonsense = MessageContext::new().traceparent("from a header");
    /// assert_eq!(nonsense, MessageContext::new());
    /// ```
    #[must_use]
    pub fn traceparent(mut self, value: impl Into<String>) -> Self {
        self.traceparent = Some(value.into()).filter(|value| is_traceparent(value));
        self.is_trace_set = self.traceparent.is_some();
        self
    }

    /// Sets the `tracestate` of the [W3C trace context](https://www.w3.org/TR/trace-context/). It
    /// travels with a [`traceparent`](Self::traceparent) alone, and a value that is none is left out.
    #[must_use]
    pub fn tracestate(mut self, value: impl Into<String>) -> Self {
        self.tracestate = Some(value.into()).filter(|value| is_tracestate(value));
        self
    }

    /// Adds a header to every event: a name of 1 to 255 bytes, a value of up to 4,096.
    #[must_use]
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.headers.insert(name.into(), value.into());
        self
    }

    /// The trace context, if there is one.
    pub(crate) fn trace(&self) -> Option<TraceContext<'_>> {
        let traceparent = self.traceparent.as_deref()?;
        let tracestate = self.tracestate.as_deref();
        Some(TraceContext {
            traceparent,
            tracestate,
        })
    }

    /// Whether the trace context was set by the user, so that nothing takes its place.
    pub(crate) const fn is_trace_set(&self) -> bool {
        self.is_trace_set
    }

    /// Checks that everything fits an envelope.
    ///
    /// # Errors
    /// [`ContextError`] names the first field that does not.
    pub fn check(&self) -> Result<(), ContextError> {
        let ids = [
            ("correlation id", &self.correlation_id),
            ("causation id", &self.causation_id),
        ];
        for (field, value) in ids {
            if let Some(value) = value {
                check_text(field, value, 1, MAX_ID_BYTES)?;
            }
        }
        for (name, value) in &self.headers {
            check_text("header name", name, 1, MAX_ID_BYTES)?;
            check_text("header value", value, 0, MAX_HEADER_BYTES)?;
        }
        Ok(())
    }
}

fn check_text(
    field: &'static str,
    value: &str,
    least: usize,
    limit: usize,
) -> Result<(), ContextError> {
    if value.len() < least {
        return Err(ContextError::Empty { field });
    }
    if value.len() > limit {
        return Err(ContextError::TooLong {
            field,
            bytes: value.len(),
            limit,
        });
    }
    match value.char_indices().find(|(_, c)| c.is_control()) {
        Some((at, _)) => Err(ContextError::ControlCharacter { field, at }),
        None => Ok(()),
    }
}
