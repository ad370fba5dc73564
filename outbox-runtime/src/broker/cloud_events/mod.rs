//! Messages as [CloudEvents 1.0](https://github.com/cloudevents/spec/blob/v1.0.2/cloudevents/spec.md),
//! as every SDK in any language reads them.
//!
//! | envelope | CloudEvents attribute |
//! |---|---|
//! | `message_id` | `id` |
//! | `event_type` | `type` |
//! | `producer` | `source`; where it is no URI reference that is percent-encoded, and `producer` has it as it is |
//! | `occurred_at` | `time` |
//! | `aggregate_id` | `subject`, `aggregateid`, `partitionkey` |
//! | `aggregate_type` | `aggregatetype` |
//! | `sequence` | `aggregatesequence` |
//! | `schema_version` | `schemaversion` |
//! | `correlation_id` | `correlationid` |
//! | `causation_id` | `causationid` |
//! | `traceparent`, `tracestate` | the same |
//! | free headers | `outboxheaders`, a JSON object |
//! | | `datacontenttype` is always `application/json` |
//!
//! What comes from others may lack all but `id`, `type`, `source` and `specversion`. Then the schema
//! version is 1, the correlation id is the id, the time is that of the broker, and what has a
//! `partitionkey` (or a Kafka key) is ordered by it as an aggregate of the type `source`. An `id` is
//! unique with its source alone, so unless `schemaversion` says that one of ours made it, it becomes
//! a UUID of version 8: the first half of a SHA-256 of source and id. A `time` that is a whole number
//! is AMQP's, the milliseconds since 1970. Attributes that have no place in the envelope become its
//! headers.

mod reading;
mod writing;

pub(super) use reading::{Read, read};
pub use writing::{CloudEventError, binary, structured};

pub use super::decoding::{Decoded, Decoder};

/// The media type of a CloudEvent in JSON.
pub const STRUCTURED: &str = "application/cloudevents+json";
/// The media type of payloads.
pub const JSON: &str = "application/json";

/// How a CloudEvent is laid out in a broker's message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum ContentMode {
    /// Attributes are the protocol's headers, the payload is the body as it is.
    #[default]
    Binary,
    /// All is one JSON object in the body, so that it passes through what loses headers.
    Structured,
}

/// How a protocol writes attributes as headers in binary mode.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Binding {
    /// What stands before an attribute's name.
    pub prefix: &'static str,
    /// What else is understood there.
    pub also: &'static [&'static str],
    /// Whether values are percent-encoded, as in the HTTP binding.
    pub is_percent_encoded: bool,
    /// Whether the protocol's key orders messages where no attribute does.
    pub is_ordered_by_key: bool,
}

impl Binding {
    /// [Kafka](https://github.com/cloudevents/spec/blob/v1.0.2/cloudevents/bindings/kafka-protocol-binding.md).
    pub const KAFKA: Self = Self {
        prefix: "ce_",
        also: &[],
        is_percent_encoded: false,
        is_ordered_by_key: true,
    };
    /// [NATS](https://github.com/cloudevents/spec/blob/v1.0.2/cloudevents/bindings/nats-protocol-binding.md).
    pub const NATS: Self = Self {
        prefix: "ce-",
        also: &[],
        is_percent_encoded: true,
        is_ordered_by_key: false,
    };
    /// [AMQP](https://github.com/cloudevents/spec/blob/v1.0.2/cloudevents/bindings/amqp-protocol-binding.md),
    /// whose application properties are the headers of AMQP 0.9.1. `ce-` is what others who know of
    /// nothing but RabbitMQ write, such as Knative.
    pub const AMQP: Self = Self {
        prefix: "cloudEvents_",
        also: &["cloudEvents:", "ce-"],
        is_percent_encoded: false,
        is_ordered_by_key: false,
    };
    /// There is none for Redis Streams: the entry's fields are named as Kafka's headers.
    pub const REDIS: Self = Self {
        prefix: "ce_",
        also: &[],
        is_percent_encoded: false,
        is_ordered_by_key: false,
    };
}

#[cfg(test)]
mod tests;
