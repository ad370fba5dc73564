use std::collections::{BTreeMap, BTreeSet};

use time::OffsetDateTime;
use time::macros::datetime;
use uuid::Uuid;

use super::*;
use crate::broker::raw::RawMessage;
use crate::broker::standing_in::derived_id;
use crate::domain::{AggregateRef, Message, MessageId, Metadata};

const NOW: OffsetDateTime = datetime!(2026-01-02 03:04:05 UTC);
const BINDINGS: [Binding; 4] = [Binding::KAFKA, Binding::NATS, Binding::AMQP, Binding::REDIS];

fn message() -> Message {
    Message {
        metadata: Metadata {
            message_id: MessageId::from_uuid(Uuid::from_u128(7)),
            event_type: "order.placed".to_owned(),
            schema_version: 3,
            aggregate: Some(AggregateRef {
                aggregate_type: "Order".to_owned(),
                aggregate_id: "ö \"1%\"\r\n".to_owned(),
                sequence: i64::MAX,
            }),
            correlation_id: "c 1".to_owned(),
            causation_id: Some("because".to_owned()),
            producer: "my {shop}".to_owned(),
            occurred_at: datetime!(2025-02-24 10:11:12.123456789 +1),
            traceparent: Some("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01".to_owned()),
            tracestate: Some("a=1,b=2".to_owned()),
            headers: BTreeMap::from([("X-Tenant: ü".to_owned(), "{\"a\"}".to_owned())]),
        },
        payload: "{ \"b\":1.0,  \"a\": \"\\u00fc\" }".to_owned(),
    }
}

fn wanted() -> BTreeSet<String> {
    BTreeSet::from(["order.placed".to_owned()])
}

fn in_binary(message: &Message, binding: Binding) -> RawMessage {
    let mut raw = RawMessage::new("t", "1", message.payload.as_bytes());
    raw.headers = binary(message, binding).unwrap().into_iter().collect();
    raw.content_type = Some(JSON.to_owned());
    raw
}

fn in_json(json: impl Into<Vec<u8>>) -> RawMessage {
    let mut raw = RawMessage::new("t", "1", json);
    raw.content_type = Some("Application/CloudEvents+JSON; charset=utf-8".to_owned());
    raw
}

fn read_message(raw: &RawMessage) -> Message {
    match read(raw, Binding::KAFKA, &wanted(), NOW) {
        Read::Message(message) => *message,
        other => panic!("{other:?}"),
    }
}

fn reason(raw: &RawMessage) -> String {
    match read(raw, Binding::KAFKA, &wanted(), NOW) {
        Read::Malformed { reason, .. } => reason,
        other => panic!("{other:?}"),
    }
}

#[test]
fn what_is_written_is_read_as_it_was_in_both_modes_of_all_bindings() {
    let mut plain = message();
    plain.metadata.aggregate = None;
    plain.metadata.causation_id = None;
    plain.metadata.traceparent = None;
    plain.metadata.tracestate = None;
    plain.metadata.headers.clear();
    plain.metadata.producer = String::new();
    for message in [message(), plain] {
        for binding in BINDINGS {
            match read(&in_binary(&message, binding), binding, &wanted(), NOW) {
                Read::Message(read) => assert_eq!(*read, message, "{binding:?}"),
                other => panic!("{binding:?}: {other:?}"),
            }
        }
        let json = structured(&message).unwrap();
        assert!(json.contains(&message.payload), "byte for byte");
        assert_eq!(read_message(&in_json(json)), message);
    }
}

#[test]
fn the_http_rules_are_kept_where_headers_are_percent_encoded() {
    let headers: BTreeMap<_, _> = binary(&message(), Binding::NATS)
        .unwrap()
        .into_iter()
        .collect();
    assert_eq!(headers["ce-subject"], "%C3%B6%20%221%25%22%0D%0A");
    assert_eq!(headers["ce-source"], "my%2520%257Bshop%257D");
    assert!(
        headers
            .values()
            .all(|value| value.chars().all(|c| matches!(c, '!'..='~')))
    );
}

#[test]
fn a_message_without_our_extensions_has_sensible_defaults() {
    let raw = in_json(
        r#"{"specversion":"1.0","id":"A-1","source":"https://x/y","type":"order.placed",
            "partitionkey":"k-1","tenant":"t-1","size":3,"nothing":null,"data":{"a":1}}"#,
    );
    let message = read_message(&raw);
    let metadata = &message.metadata;
    assert_eq!(message.payload, r#"{"a":1}"#);
    assert_eq!(
        metadata.message_id,
        derived_id(&["event", "https://x/y", "A-1"])
    );
    assert_eq!(metadata.message_id.as_uuid().get_version_num(), 8);
    assert_eq!(metadata.schema_version, 1);
    assert_eq!(metadata.correlation_id, "A-1");
    assert_eq!(metadata.causation_id, None);
    assert_eq!(metadata.producer, "https://x/y");
    assert_eq!(metadata.occurred_at, NOW);
    let aggregate = metadata.aggregate.as_ref().unwrap();
    assert_eq!(aggregate.aggregate_type, "https://x/y");
    assert_eq!(aggregate.aggregate_id, "k-1");
    let headers = [("size", "3"), ("tenant", "t-1")];
    let headers = headers.map(|(name, value)| (name.to_owned(), value.to_owned()));
    assert_eq!(metadata.headers, headers.into());

    let mut keyed = RawMessage::new("t", "1", "{}");
    keyed.key = Some("k-2".to_owned());
    keyed.published_at = Some(datetime!(2020-01-01 0:00 UTC));
    for (name, value) in [
        ("CE_specversion", "1.0"),
        ("ce_id", "A-1"),
        ("ce_source", "s"),
        ("ce_type", "order.placed"),
    ] {
        keyed.headers.insert(name.to_owned(), value.to_owned());
    }
    let metadata = read_message(&keyed).metadata;
    assert_eq!(metadata.aggregate.unwrap().aggregate_id, "k-2");
    assert_eq!(metadata.occurred_at, datetime!(2020-01-01 0:00 UTC));
    match read(&keyed, Binding::REDIS, &wanted(), NOW) {
        Read::Message(message) => assert_eq!(message.metadata.aggregate, None),
        other => panic!("{other:?}"),
    }
}

#[test]
fn what_others_write_on_rabbitmq_is_read() {
    for (prefix, time) in [
        ("cloudEvents_", "1577836800000"),
        ("cloudEvents:", "2020-01-01T00:00:00Z"),
        ("ce-", "2020-01-01T00:00:00Z"),
    ] {
        let mut raw = RawMessage::new("t", "1", "{}");
        for (name, value) in [
            ("specversion", "1.0"),
            ("id", "A-1"),
            ("source", "s"),
            ("type", "order.placed"),
            ("time", time),
            ("partitionkey", "50%20"),
        ] {
            raw.headers
                .insert(format!("{prefix}{name}"), value.to_owned());
        }
        match read(&raw, Binding::AMQP, &wanted(), NOW) {
            Read::Message(message) => {
                let metadata = message.metadata;
                assert_eq!(metadata.occurred_at, datetime!(2020-01-01 0:00 UTC));
                assert_eq!(metadata.aggregate.unwrap().aggregate_id, "50%20");
            }
            other => panic!("{prefix}: {other:?}"),
        }
    }
}

#[test]
fn what_is_no_cloud_event_says_why() {
    let event = |more: &str| {
        format!(r#"{{"specversion":"1.0","id":"1","source":"s","type":"order.placed"{more}}}"#)
    };
    for (json, says) in [
        ("[1]".to_owned(), "no JSON object"),
        ("{".to_owned(), "no JSON object"),
        (event(r#","a":[]"#), "its attribute a is neither"),
        (event(r#","data_base64":"?""#), "no base64"),
        (
            event(r#","datacontenttype":"text/plain","data":"x""#),
            "its content is text/plain",
        ),
        (event(r#","time":"yesterday""#), "RFC 3339"),
        (event(r#","schemaversion":0"#), "no number from 1"),
        (event(r#","aggregatesequence":"x""#), "whole number"),
        (event(r#","outboxheaders":"x""#), "outboxheaders"),
        (event(r#","a":"\u0000""#), "NUL"),
        (event(r#","a\u0000b":{}"#), "neither"),
        (event(r#","a\u0000b":"c""#), "NUL"),
        (event(r#","outboxheaders":"{\"a\":\"\\u0000\"}""#), "NUL"),
        (event(r#","time":-300000000000000"#), "before the year 0"),
        (
            event("").replace("order.placed", ""),
            "attribute type is missing",
        ),
        (event("").replace("1.0", "2.0"), "version 2.0"),
        (
            event("").replace("\"1\"", "\"\""),
            "attribute id is missing",
        ),
        (
            event("").replace("source", "sauce"),
            "attribute source is missing",
        ),
    ] {
        let reason = reason(&in_json(json.clone()));
        assert!(reason.contains(says), "{json}: {reason}");
    }
    let mut batch = in_json("[]");
    batch.content_type = Some("application/cloudevents-batch+json".to_owned());
    assert!(reason(&batch).contains("one by one"));
    assert!(reason(&RawMessage::new("t", "1", "hello")).contains("foreign"));
    let mut broken = in_binary(&message(), Binding::KAFKA);
    broken.body = vec![0xff];
    assert!(reason(&broken).contains("not UTF-8"));
}

#[test]
fn an_id_is_unique_with_its_source_alone() {
    let read_id = |source: &str, more: &str| {
        let json = format!(
            r#"{{"specversion":"1.0","id":"00000000-0000-0000-0000-000000000007","source":"{source}",
                "type":"order.placed"{more}}}"#
        );
        read_message(&in_json(json)).metadata.message_id
    };
    assert_ne!(read_id("a", ""), read_id("b", ""));
    assert_eq!(read_id("a", ""), read_id("a", ""));
    // One that one of ours has made.
    let ours = read_id("a", r#","schemaversion":1"#);
    assert_eq!(ours, MessageId::from_uuid(Uuid::from_u128(7)));
}

#[test]
fn what_is_empty_is_not_written_and_read_as_it_was() {
    let mut message = message();
    for (kind, id) in [("", "1"), ("Order", ""), ("", "")] {
        message.metadata.producer = "/".to_owned();
        message.metadata.aggregate = Some(AggregateRef {
            aggregate_type: kind.to_owned(),
            aggregate_id: id.to_owned(),
            sequence: 1,
        });
        let raw = in_binary(&message, Binding::KAFKA);
        assert!(raw.headers.values().all(|value| !value.is_empty()));
        assert_eq!(read_message(&raw), message);
    }
}

#[test]
fn what_nobody_wants_is_passed_over_before_it_is_judged() {
    let json = r#"{"specversion":"1.0","id":"1","source":"s","type":"other","time":"no"}"#;
    let read = read(&in_json(json), Binding::KAFKA, &wanted(), NOW);
    assert!(matches!(read, Read::Unwanted));
}

#[test]
fn what_has_no_form_as_a_cloud_event_is_refused() {
    let mut nameless = message();
    nameless.metadata.event_type.clear();
    assert!(matches!(
        structured(&nameless),
        Err(CloudEventError::NoType)
    ));
    let mut broken = message();
    broken.payload = "{".to_owned();
    assert!(matches!(
        structured(&broken),
        Err(CloudEventError::Payload(_))
    ));
    assert!(binary(&broken, Binding::KAFKA).is_ok());
}
