//! What stands in for something that is no message.

use std::collections::BTreeMap;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest, Sha256};
use time::{OffsetDateTime, UtcOffset};
use uuid::Builder;

use super::raw::RawMessage;
use crate::domain::{Message, MessageId, Metadata};

/// The event type of what names none.
const NAMELESS: &str = "malformed";
/// Says how the payload of a stand-in holds bytes that are no text.
const ENCODING: &str = "outbox-payload-encoding";

/// A message that keeps all of what came: the bytes as payload, base64 where they are no text, and
/// the headers.
pub(super) fn stand_in(
    raw: &RawMessage,
    event_type: Option<String>,
    now: OffsetDateTime,
) -> Message {
    let without_nul = |text: &str| text.replace('\0', "\u{fffd}");
    let mut headers: BTreeMap<String, String> = raw
        .headers
        .iter()
        .map(|(name, value)| (without_nul(name), without_nul(value)))
        .collect();
    if let Some(content_type) = &raw.content_type {
        headers.insert("content-type".to_owned(), without_nul(content_type));
    }
    headers.insert("outbox-topic".to_owned(), without_nul(&raw.topic));
    headers.insert("outbox-position".to_owned(), without_nul(&raw.position));
    if let Some(key) = &raw.key {
        headers.insert("outbox-key".to_owned(), without_nul(key));
    }
    let payload = match std::str::from_utf8(&raw.body) {
        Ok(text) if is_storable(text) => text.to_owned(),
        _ => {
            headers.insert(ENCODING.to_owned(), "base64".to_owned());
            STANDARD.encode(&raw.body)
        }
    };
    // With the content: where a place is no more than what a publisher says, two may have one.
    let message_id = derived_id(&[
        "malformed",
        &raw.topic,
        &raw.position,
        &time_of_place(raw),
        &STANDARD.encode(Sha256::digest(&raw.body)),
    ]);
    Message {
        metadata: Metadata {
            message_id,
            event_type: event_type
                .filter(|name| !name.is_empty())
                .map_or_else(|| NAMELESS.to_owned(), |name| without_nul(&name)),
            schema_version: 1,
            aggregate: None,
            correlation_id: message_id.to_string(),
            causation_id: None,
            producer: without_nul(&raw.topic),
            occurred_at: raw.published_at.unwrap_or(now),
            traceparent: None,
            tracestate: None,
            headers,
        },
        payload,
    }
}

/// The id of a message that has none of its own: that of its place, the same each time it is
/// delivered.
pub(super) fn position_id(raw: &RawMessage) -> MessageId {
    derived_id(&["place", &raw.topic, &raw.position, &time_of_place(raw)])
}

/// A UUID of version 8 ([RFC 9562](https://www.rfc-editor.org/rfc/rfc9562), section 5.8) made of
/// the SHA-256 of the texts. The first says what the others are.
pub(super) fn derived_id(texts: &[&str]) -> MessageId {
    let mut hash = Sha256::new();
    for text in texts {
        // A length first, so that no two lists give the same text.
        hash.update((text.len() as u64).to_be_bytes());
        hash.update(text);
    }
    let mut bytes = [0; 16];
    for (byte, hashed) in bytes.iter_mut().zip(hash.finalize()) {
        *byte = hashed;
    }
    MessageId::from_uuid(Builder::from_custom_bytes(bytes).into_uuid())
}

/// A topic that was deleted and made again counts its places anew. Where the broker keeps the time
/// of each, they differ in that.
fn time_of_place(raw: &RawMessage) -> String {
    let time = raw.published_at.filter(|_| raw.has_time_of_place);
    time.map_or_else(String::new, |time| time.unix_timestamp_nanos().to_string())
}

/// Whether every database takes the text: NUL is no character of PostgreSQL's.
pub(super) fn is_storable(text: &str) -> bool {
    !text.contains('\0')
}

/// Whether every database takes the time, and RFC 3339 has a form for it.
pub(super) fn is_storable_time(time: &OffsetDateTime) -> bool {
    (0..=9999).contains(&time.to_offset(UtcOffset::UTC).year())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_place_has_an_id_and_a_topic_that_was_made_anew_has_others() {
        let raw = |topic: &str, position: &str, second| {
            let mut raw = RawMessage::new(topic, position, "");
            raw.published_at = Some(OffsetDateTime::UNIX_EPOCH + time::Duration::seconds(second));
            raw.has_time_of_place = topic != "publishers";
            position_id(&raw)
        };
        assert_eq!(raw("publishers", "1", 0), raw("publishers", "1", 1));
        assert_eq!(raw("t", "1", 0), raw("t", "1", 0));
        assert_ne!(raw("t", "1", 0), raw("t", "1", 1));
        assert_ne!(raw("t", "1", 0), raw("t", "2", 0));
        assert_ne!(raw("t", "1", 0), raw("t1", "", 0));
        assert_ne!(derived_id(&["ab", "c"]), derived_id(&["a", "bc"]));
    }

    #[test]
    fn two_malformed_messages_at_one_place_are_two() {
        let stand_in = |body: &str| {
            let raw = RawMessage::new("t", "1", body);
            stand_in(&raw, None, OffsetDateTime::UNIX_EPOCH)
                .metadata
                .message_id
        };
        assert_eq!(stand_in("a"), stand_in("a"));
        assert_ne!(stand_in("a"), stand_in("b"));
    }
}
