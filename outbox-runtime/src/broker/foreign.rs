use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use time::OffsetDateTime;

use super::error::BoxError;
use super::raw::RawMessage;

type Map = dyn Fn(&RawMessage) -> Result<Option<ForeignEvent>, BoxError> + Send + Sync;

/// A topic that others own and that is consumed like one's own.
///
/// It is named as the broker names it: a Kafka topic, a NATS stream, a RabbitMQ exchange, a Redis
/// stream. Either it holds CloudEvents, or a mapping makes events of what it holds; handlers then
/// take them, each with its effect once, as any other. A message that the mapping refuses is kept
/// as a dead letter with its bytes.
///
/// Within one foreign topic order is kept by [`ForeignEvent::aggregate`], as far as the topic's
/// own owners keep it.
///
/// ```
/// use outbox_runtime::broker::{BrokerOptions, ForeignEvent, ForeignTopic};
///
/// // {"invoice": 17, "paid": true}
/// let invoices = ForeignTopic::mapped("billing.invoices", |raw| {
///     let invoice: serde_json::Value = serde_json::from_slice(&raw.body)?;
///     if invoice["paid"] != true {
///         return Ok(None); // of no interest
///     }
///     let number = invoice["invoice"].to_string();
///     let payload = serde_json::json!({ "invoice": number }).to_string();
///     Ok(Some(
///         ForeignEvent::new("InvoicePaid", payload)
///             .id(format!("invoice-{number}-paid"))
///             .aggregate("Invoice", number),
///     ))
/// });
/// let options = BrokerOptions::new().foreign(invoices);
/// ```
#[derive(Clone)]
pub struct ForeignTopic {
    pub(super) name: String,
    map: Option<Arc<Map>>,
}

impl ForeignTopic {
    /// A topic with CloudEvents.
    pub fn cloud_events(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            map: None,
        }
    }

    /// A topic with anything else, and what makes events of it; `None` for what is of no interest.
    ///
    /// The mapping must give the same id for the same message each time, since duplicates are told
    /// by it. An error, and a panic, make the message a dead letter.
    pub fn mapped(
        name: impl Into<String>,
        map: impl Fn(&RawMessage) -> Result<Option<ForeignEvent>, BoxError> + Send + Sync + 'static,
    ) -> Self {
        Self {
            name: name.into(),
            map: Some(Arc::new(map)),
        }
    }

    pub(super) fn map(&self) -> Option<&Map> {
        self.map.as_deref()
    }
}

impl fmt::Debug for ForeignTopic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ForeignTopic")
            .field("name", &self.name)
            .field("is_mapped", &self.map.is_some())
            .finish()
    }
}

/// An event made of a foreign message.
#[derive(Clone)]
pub struct ForeignEvent {
    pub(super) event_type: String,
    pub(super) payload: String,
    pub(super) schema_version: u32,
    pub(super) id: Option<String>,
    pub(super) aggregate: Option<(String, String)>,
    pub(super) correlation_id: Option<String>,
    pub(super) producer: Option<String>,
    pub(super) occurred_at: Option<OffsetDateTime>,
    pub(super) headers: BTreeMap<String, String>,
}

impl ForeignEvent {
    /// An event of this wire name, version 1, with this payload as JSON text.
    ///
    /// Unless told otherwise its id is derived from the message's topic and position, its
    /// correlation id is its id, its producer the topic, and it happened when the broker took it.
    pub fn new(event_type: impl Into<String>, payload: impl Into<String>) -> Self {
        Self {
            event_type: event_type.into(),
            payload: payload.into(),
            schema_version: 1,
            id: None,
            aggregate: None,
            correlation_id: None,
            producer: None,
            occurred_at: None,
            headers: BTreeMap::new(),
        }
    }

    /// Sets the id: any text that the same event always has and no other event of the producer.
    #[must_use]
    pub fn id(mut self, id: impl Into<String>) -> Self {
        self.id = Some(id.into());
        self
    }

    /// Sets what the event is about, which orders it among others of the same.
    #[must_use]
    pub fn aggregate(mut self, kind: impl Into<String>, id: impl Into<String>) -> Self {
        self.aggregate = Some((kind.into(), id.into()));
        self
    }

    /// Sets the version of the payload's schema, from 1.
    #[must_use]
    pub fn schema_version(mut self, version: u32) -> Self {
        self.schema_version = version.max(1);
        self
    }

    /// Sets what ties together all messages of one business process.
    #[must_use]
    pub fn correlation_id(mut self, id: impl Into<String>) -> Self {
        self.correlation_id = Some(id.into());
        self
    }

    /// Sets who published it.
    #[must_use]
    pub fn producer(mut self, producer: impl Into<String>) -> Self {
        self.producer = Some(producer.into());
        self
    }

    /// Sets when it happened.
    #[must_use]
    pub fn occurred_at(mut self, at: OffsetDateTime) -> Self {
        self.occurred_at = Some(at);
        self
    }

    /// Adds a header.
    #[must_use]
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.headers.insert(name.into(), value.into());
        self
    }
}

/// Shows the payload's size, never the payload.
impl fmt::Debug for ForeignEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ForeignEvent")
            .field("event_type", &self.event_type)
            .field("id", &self.id)
            .field("payload_bytes", &self.payload.len())
            .finish_non_exhaustive()
    }
}
