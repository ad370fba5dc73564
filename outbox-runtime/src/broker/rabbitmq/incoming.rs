use std::fmt::Write;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use lapin::message::Delivery;
use lapin::types::{AMQPValue, FieldTable};
use sha2::{Digest, Sha256};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use super::outgoing::MILLISECONDS;
use crate::broker::RawMessage;
use crate::clock::Clock;

/// How often a quorum queue handed it out before.
const DELIVERY_COUNT: &str = "x-delivery-count";

/// What the server handed over, as it comes from this exchange.
pub(super) fn raw_message(delivery: &mut Delivery, exchange: &str, is_foreign: bool) -> RawMessage {
    let position = position(delivery, is_foreign);
    let body = std::mem::take(&mut delivery.data);
    let properties = &delivery.properties;
    let mut raw = RawMessage::new(exchange, position, body);
    raw.key = Some(delivery.routing_key.to_string());
    raw.content_type = properties.content_type().as_ref().map(ToString::to_string);
    raw.published_at = published_at(delivery);
    for (name, value) in properties.headers().iter().flatten() {
        if let Some(value) = text_of(value) {
            raw.headers.insert(name.to_string(), value);
        }
    }
    raw
}

/// RabbitMQ numbers the messages of a channel, which tells nothing of those of another one. So it is
/// the id that the publisher gave it.
fn position(delivery: &Delivery, is_foreign: bool) -> String {
    match delivery.properties.message_id() {
        Some(id) if !id.as_str().is_empty() => id.to_string(),
        // An event may be made of it, of which two may look alike: rather one twice than one lost.
        _ if is_foreign => Clock::system().new_id().to_string(),
        // It serves for dead letters alone, of which two that look alike are one.
        _ => {
            let mut hash = Sha256::new();
            hash.update(delivery.routing_key.as_str());
            hash.update(&delivery.data);
            let mut text = String::with_capacity(64);
            for byte in hash.finalize() {
                // Writing to a string does not fail.
                let _ = write!(text, "{byte:02x}");
            }
            text
        }
    }
}

/// How often it was handed out, this time included, as far as the queue counts.
pub(super) fn attempt(delivery: &Delivery) -> u32 {
    let before = header(delivery, DELIVERY_COUNT).and_then(number_of);
    let before = before.and_then(|count| u32::try_from(count).ok());
    match before {
        Some(before) if before > 0 => before.saturating_add(1),
        _ if delivery.redelivered => 2,
        _ => 1,
    }
}

fn published_at(delivery: &Delivery) -> Option<OffsetDateTime> {
    let seconds = || {
        let seconds = (*delivery.properties.timestamp())?;
        OffsetDateTime::from_unix_timestamp(i64::try_from(seconds).ok()?).ok()
    };
    let milliseconds = header(delivery, MILLISECONDS).and_then(number_of);
    milliseconds
        .and_then(|ms| OffsetDateTime::from_unix_timestamp_nanos(i128::from(ms) * 1_000_000).ok())
        .or_else(seconds)
}

fn header<'a>(delivery: &'a Delivery, name: &str) -> Option<&'a AMQPValue> {
    let headers: &FieldTable = delivery.properties.headers().as_ref()?;
    headers.inner().get(name)
}

fn number_of(value: &AMQPValue) -> Option<i64> {
    match *value {
        AMQPValue::ShortShortInt(value) => Some(value.into()),
        AMQPValue::ShortShortUInt(value) => Some(value.into()),
        AMQPValue::ShortInt(value) => Some(value.into()),
        AMQPValue::ShortUInt(value) => Some(value.into()),
        AMQPValue::LongInt(value) => Some(value.into()),
        AMQPValue::LongUInt(value) => Some(value.into()),
        AMQPValue::LongLongInt(value) => Some(value),
        _ => None,
    }
}

/// A header's value as text, as the binding of CloudEvents to AMQP maps it; nothing for what is
/// nested or empty.
fn text_of(value: &AMQPValue) -> Option<String> {
    match value {
        AMQPValue::LongString(text) => Some(text.to_string()),
        AMQPValue::ShortString(text) => Some(text.to_string()),
        AMQPValue::Boolean(value) => Some(value.to_string()),
        AMQPValue::Float(value) => Some(value.to_string()),
        AMQPValue::Double(value) => Some(value.to_string()),
        AMQPValue::ByteArray(bytes) => Some(STANDARD.encode(bytes.as_slice())),
        AMQPValue::Timestamp(seconds) => {
            let seconds = i64::try_from(*seconds).ok()?;
            let time = OffsetDateTime::from_unix_timestamp(seconds).ok()?;
            time.format(&Rfc3339).ok()
        }
        AMQPValue::DecimalValue(_)
        | AMQPValue::FieldArray(_)
        | AMQPValue::FieldTable(_)
        | AMQPValue::Void => None,
        number => number_of(number).map(|number| number.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use lapin::BasicProperties;

    use super::*;

    fn delivery(properties: BasicProperties, redelivered: bool) -> Delivery {
        let mut delivery =
            Delivery::mock(1, "x".into(), "3.Paid".into(), redelivered, b"{}".to_vec());
        delivery.properties = properties;
        delivery
    }

    fn headers(values: Vec<(&str, AMQPValue)>) -> BasicProperties {
        let mut table = FieldTable::default();
        for (name, value) in values {
            table.insert(name.into(), value);
        }
        BasicProperties::default().with_headers(table)
    }

    #[test]
    fn values_of_all_types_become_text() {
        let properties = headers(vec![
            ("text", AMQPValue::LongString("ä".into())),
            ("number", AMQPValue::LongLongInt(-7)),
            ("small", AMQPValue::ShortShortUInt(7)),
            ("yes", AMQPValue::Boolean(true)),
            ("time", AMQPValue::Timestamp(0)),
            ("bytes", AMQPValue::ByteArray(vec![1, 2].into())),
            ("nothing", AMQPValue::Void),
            ("table", AMQPValue::FieldTable(FieldTable::default())),
        ]);
        let raw = raw_message(&mut delivery(properties, false), "billing", true);
        let headers: Vec<_> = raw
            .headers
            .iter()
            .map(|(name, value)| format!("{name}={value}"))
            .collect();
        assert_eq!(
            headers,
            [
                "bytes=AQI=",
                "number=-7",
                "small=7",
                "text=ä",
                "time=1970-01-01T00:00:00Z",
                "yes=true"
            ]
        );
        assert_eq!(raw.topic, "billing");
        assert_eq!(raw.key.as_deref(), Some("3.Paid"));
        assert_eq!(raw.body, b"{}");
    }

    #[test]
    fn its_id_is_its_position() {
        let position = |properties, is_foreign| {
            raw_message(&mut delivery(properties, false), "x", is_foreign).position
        };
        let with_id = || BasicProperties::default().with_message_id("m-1".into());
        assert_eq!(position(with_id(), false), "m-1");
        assert_eq!(position(with_id(), true), "m-1");
        // Without one: of its content, or never the same.
        let without = BasicProperties::default;
        assert_eq!(position(without(), false), position(without(), false));
        assert_ne!(position(without(), true), position(without(), true));
    }

    #[test]
    fn attempts_are_counted_as_far_as_the_queue_does() {
        assert_eq!(attempt(&delivery(BasicProperties::default(), false)), 1);
        assert_eq!(attempt(&delivery(BasicProperties::default(), true)), 2);
        let counted = headers(vec![(DELIVERY_COUNT, AMQPValue::LongLongInt(4))]);
        assert_eq!(attempt(&delivery(counted, true)), 5);
    }

    #[test]
    fn the_time_is_the_publishers_in_milliseconds_where_it_says_them() {
        let at = |properties| {
            let at = raw_message(&mut delivery(properties, false), "x", false).published_at;
            at.map(|at| at.unix_timestamp_nanos() / 1_000_000)
        };
        assert_eq!(at(BasicProperties::default()), None);
        assert_eq!(
            at(BasicProperties::default().with_timestamp(9)),
            Some(9_000)
        );
        let both = headers(vec![(MILLISECONDS, AMQPValue::LongLongInt(9_001))]).with_timestamp(9);
        assert_eq!(at(both), Some(9_001));
        let absurd = BasicProperties::default().with_timestamp(u64::MAX);
        assert_eq!(at(absurd), None);
    }
}
