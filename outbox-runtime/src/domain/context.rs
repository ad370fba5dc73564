use std::collections::BTreeMap;

use super::envelope::Metadata;

/// The longest correlation id, causation id or header name, in bytes.
const MAX_ID_BYTES: usize = 255;
/// The longest header value, in bytes.
const MAX_HEADER_BYTES: usize = 4096;

/// What the events of a unit of work inherit: correlation, causation, trace and headers.
///
/// Outside a handler you say what you know; without a correlation id the first message's own id
/// starts a new one. Inside a handler the context of the incoming message is already set.
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

    /// The context of what a handler raises: the message's correlation, and the message as the cause.
    pub fn caused_by(metadata: &Metadata) -> Self {
        Self {
            correlation_id: Some(metadata.correlation_id.clone()),
            causation_id: Some(metadata.message_id.to_string()),
            traceparent: metadata.traceparent.clone(),
            tracestate: metadata.tracestate.clone(),
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
    #[must_use]
    pub fn traceparent(mut self, value: impl Into<String>) -> Self {
        self.traceparent = Some(value.into());
        self
    }

    /// Sets the `tracestate` of the [W3C trace context](https://www.w3.org/TR/trace-context/).
    #[must_use]
    pub fn tracestate(mut self, value: impl Into<String>) -> Self {
        self.tracestate = Some(value.into());
        self
    }

    /// Adds a header to every event: a name of 1 to 255 bytes, a value of up to 4,096.
    #[must_use]
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.headers.insert(name.into(), value.into());
        self
    }

    /// Checks that everything fits an envelope.
    ///
    /// # Errors
    /// [`ContextError`] names the first field that does not.
    pub fn check(&self) -> Result<(), ContextError> {
        let ids = [
            ("correlation id", &self.correlation_id),
            ("causation id", &self.causation_id),
            ("traceparent", &self.traceparent),
        ];
        for (field, value) in ids {
            if let Some(value) = value {
                check_text(field, value, 1, MAX_ID_BYTES)?;
            }
        }
        if let Some(value) = &self.tracestate {
            check_text("tracestate", value, 0, MAX_HEADER_BYTES)?;
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
