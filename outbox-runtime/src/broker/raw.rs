use std::collections::BTreeMap;
use std::fmt;

use time::OffsetDateTime;

/// What a broker handed over, before anybody has made sense of it.
///
/// It is what a [`ForeignTopic`](super::ForeignTopic)'s mapping sees. Its `Debug` shows neither
/// body nor headers.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct RawMessage {
    /// Where it was read: a Kafka topic, a NATS stream, a RabbitMQ exchange, a Redis stream.
    pub topic: String,
    /// Its place there, such as `"3/1042"` for partition and offset, which no other message has.
    /// RabbitMQ has no places: there it is the id that the publisher gave it.
    pub position: String,
    /// What it was published under, where the broker has that: Kafka's key, NATS's subject,
    /// RabbitMQ's routing key.
    pub key: Option<String>,
    /// The protocol's header of the name, where it has one.
    pub content_type: Option<String>,
    /// The protocol's headers, by name. What is not UTF-8 has replacement characters.
    pub headers: BTreeMap<String, String>,
    /// The content.
    pub body: Vec<u8>,
    /// When the broker took it, if it knows.
    pub published_at: Option<OffsetDateTime>,
    /// Whether that time was noted with the place, and is the same whenever the message comes.
    pub(super) has_time_of_place: bool,
}

impl RawMessage {
    /// A message without key, headers or time.
    pub fn new(
        topic: impl Into<String>,
        position: impl Into<String>,
        body: impl Into<Vec<u8>>,
    ) -> Self {
        Self {
            topic: topic.into(),
            position: position.into(),
            key: None,
            content_type: None,
            headers: BTreeMap::new(),
            body: body.into(),
            published_at: None,
            has_time_of_place: false,
        }
    }

    /// A header by its name, in any case.
    pub fn header(&self, name: &str) -> Option<&str> {
        let mut headers = self.headers.iter();
        headers
            .find(|(known, _)| known.eq_ignore_ascii_case(name))
            .map(|(_, value)| value.as_str())
    }
}

impl fmt::Debug for RawMessage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RawMessage")
            .field("topic", &self.topic)
            .field("position", &self.position)
            .field("headers", &self.headers.len())
            .field("body_bytes", &self.body.len())
            .finish_non_exhaustive()
    }
}
