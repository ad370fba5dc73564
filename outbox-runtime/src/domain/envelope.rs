use std::collections::BTreeMap;
use std::fmt;
use std::ops::Deref;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use time::OffsetDateTime;
use uuid::Uuid;

use super::event::{DecodeError, DomainEvent};
use super::key::KeyWriter;

/// Stands for NUL, which no text of PostgreSQL holds.
const NO_NUL: &str = "\u{fffd}";

/// A message's own identity: a UUID of version 7, so it sorts by the time of its making.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct MessageId(Uuid);

impl MessageId {
    /// The id of a message that came with one.
    pub const fn from_uuid(id: Uuid) -> Self {
        Self(id)
    }

    /// The id as a UUID.
    pub const fn as_uuid(&self) -> Uuid {
        self.0
    }
}

impl fmt::Display for MessageId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

impl fmt::Debug for MessageId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

impl FromStr for MessageId {
    type Err = uuid::Error;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Uuid::from_str(text).map(Self)
    }
}

/// The aggregate that a message is about.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct AggregateRef {
    /// The aggregate's type, such as `"Order"`.
    pub aggregate_type: String,
    /// The aggregate's id as text: the broker's ordering key.
    pub aggregate_id: String,
    /// The aggregate's version after the change; several events of one change have consecutive ones.
    pub sequence: i64,
}

/// Everything in an envelope but the event itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Metadata {
    /// The message's own identity.
    pub message_id: MessageId,
    /// The event's name on the wire.
    pub event_type: String,
    /// The version of the payload's schema, from 1.
    pub schema_version: u32,
    /// The aggregate that raised the event, if one did.
    pub aggregate: Option<AggregateRef>,
    /// What ties together all messages of one business process.
    pub correlation_id: String,
    /// The message that led to this one, if one did.
    pub causation_id: Option<String>,
    /// The service that wrote the message.
    pub producer: String,
    /// When it happened in the business, by the clock of the producer's database.
    #[serde(with = "time::serde::rfc3339")]
    pub occurred_at: OffsetDateTime,
    /// The W3C trace context's `traceparent`.
    pub traceparent: Option<String>,
    /// The W3C trace context's `tracestate`.
    pub tracestate: Option<String>,
    /// Free headers.
    pub headers: BTreeMap<String, String>,
}

impl Metadata {
    /// The key by which a broker must keep order: the aggregate's type and id, or the message
    /// itself where no aggregate raised it.
    pub fn ordering_key(&self) -> (String, String) {
        match &self.aggregate {
            Some(aggregate) => (
                aggregate.aggregate_type.clone(),
                aggregate.aggregate_id.clone(),
            ),
            None => (String::new(), self.message_id.to_string()),
        }
    }

    /// The ordering key as one text: what parked messages wait behind each other by.
    pub(crate) fn lane(&self) -> String {
        match &self.aggregate {
            Some(aggregate) => aggregate.lane(),
            None => self.message_id.to_string(),
        }
    }
}

impl AggregateRef {
    /// Type and id as one text that databases can index: bounded, and without NUL.
    pub(crate) fn lane(&self) -> String {
        let bytes = self.aggregate_type.len() + 1 + self.aggregate_id.len();
        let mut key = KeyWriter::with_capacity(bytes);
        for text in [
            self.aggregate_type.as_str(),
            // The unit separator: a control character that no type's name holds.
            "\u{1f}",
            self.aggregate_id.as_str(),
        ] {
            match text.contains('\0') {
                true => key.literal(&text.replace('\0', NO_NUL)),
                false => key.literal(text),
            }
        }
        key.finish().unwrap_or_default()
    }
}

/// A message as brokers and tables carry it: the payload is JSON text that nobody in between reads.
#[derive(Clone, PartialEq, Eq)]
pub struct Message {
    /// Everything but the payload.
    pub metadata: Metadata,
    /// The event as JSON text, byte for byte as it was written.
    pub payload: String,
}

impl Message {
    /// What its content takes up: payload and headers.
    pub(crate) fn bytes(&self) -> usize {
        let headers = self.metadata.headers.iter();
        let headers = headers.map(|(name, value)| name.len() + value.len());
        self.payload.len() + headers.sum::<usize>()
    }
}

/// Shows the metadata and the payload's size, never the payload.
impl fmt::Debug for Message {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Message")
            .field("metadata", &self.metadata)
            .field("payload_bytes", &self.payload.len())
            .finish()
    }
}

/// An event with the envelope in which it travelled: what a handler receives.
///
/// It dereferences to the event, so a handler reads `event.order_id` and
/// `event.metadata.correlation_id` alike.
#[derive(Debug, Clone)]
pub struct Envelope<E> {
    /// Everything but the event.
    pub metadata: Metadata,
    /// The event, upcast to the type's version where it was older.
    pub event: E,
}

impl<E: DomainEvent> Envelope<E> {
    /// Opens a message.
    ///
    /// # Errors
    /// [`DecodeError`] when the payload is not one of `E`'s versions.
    pub fn open(message: &Message) -> Result<Self, DecodeError> {
        Ok(Self {
            event: E::decode(message.metadata.schema_version, &message.payload)?,
            metadata: message.metadata.clone(),
        })
    }
}

impl<E> Deref for Envelope<E> {
    type Target = E;

    fn deref(&self) -> &E {
        &self.event
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lane(aggregate_id: &str) -> String {
        let aggregate = AggregateRef {
            aggregate_type: "Order".to_owned(),
            aggregate_id: aggregate_id.to_owned(),
            sequence: 1,
        };
        aggregate.lane()
    }

    #[test]
    fn an_ordering_key_is_a_bounded_text_that_every_database_takes() {
        let long = "é".repeat(5_000);
        assert!(lane(&long).len() <= 200);
        assert_ne!(lane(&long), lane(&format!("{long}x")));
        assert_eq!(lane("a\0b"), "Order\u{1f}a\u{fffd}b");
    }
}
