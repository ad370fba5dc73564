//! Messages as Kafka's records, and back.

use rdkafka::message::{BorrowedMessage, Header, Headers as _, Message as _, OwnedHeaders};
use time::OffsetDateTime;

use super::producer::Record;
use crate::broker::cloud_events::{self, Binding, CloudEventError, ContentMode, JSON, STRUCTURED};
use crate::broker::options::BrokerOptions;
use crate::broker::raw::RawMessage;
use crate::domain::Message;

const CONTENT_TYPE: &str = "content-type";

/// The full name of one of our topics.
pub(super) fn topic_name(options: &BrokerOptions, topic: &str) -> String {
    options.topics.full_name(topic, '.')
}

/// The record of a message: its key is the aggregate's id.
pub(super) fn write(message: &Message, options: &BrokerOptions) -> Result<Record, CloudEventError> {
    let metadata = &message.metadata;
    let (content_type, headers, body) = match options.content_mode {
        ContentMode::Binary => {
            let headers = cloud_events::binary(message, Binding::KAFKA)?;
            (JSON, headers, message.payload.clone())
        }
        ContentMode::Structured => (STRUCTURED, Vec::new(), cloud_events::structured(message)?),
    };
    let with = |written: OwnedHeaders, key: &str, value: &str| {
        let value = Some(value.as_bytes());
        written.insert(Header { key, value })
    };
    let mut written = with(OwnedHeaders::new(), CONTENT_TYPE, content_type);
    for (name, value) in &headers {
        written = with(written, name, value);
    }
    let aggregate = metadata.aggregate.as_ref();
    Ok(Record {
        topic: topic_name(options, options.topics.of(&metadata.event_type)),
        key: aggregate.map(|aggregate| aggregate.aggregate_id.clone()),
        headers: written,
        body,
    })
}

/// What a record holds; a tombstone has an empty body.
pub(super) fn read(record: &BorrowedMessage<'_>) -> RawMessage {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let position = format!("{}/{}", record.partition(), record.offset());
    let mut raw = RawMessage::new(
        record.topic(),
        position,
        record.payload().unwrap_or_default(),
    );
    raw.has_time_of_place = true;
    raw.key = record.key().map(text);
    for header in record.headers().iter().flat_map(|headers| headers.iter()) {
        let value = text(header.value.unwrap_or_default());
        match header.key.eq_ignore_ascii_case(CONTENT_TYPE) {
            true => raw.content_type = Some(value),
            false => {
                raw.headers.insert(header.key.to_owned(), value);
            }
        }
    }
    raw.published_at = record.timestamp().to_millis().and_then(|millis| {
        OffsetDateTime::from_unix_timestamp_nanos(i128::from(millis) * 1_000_000).ok()
    });
    raw
}
