//! What others read of ours.

use std::collections::BTreeMap;

use outbox_runtime::Message;
use outbox_runtime::broker::ContentMode;
use outbox_tests::brokers::TestBroker;
use outbox_tests::brokers::suite::{Member, event};
use serde_json::{Value, json};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;
use time::macros::datetime;

use crate::python::{Reading, ground};

const AT: OffsetDateTime = datetime!(2026-02-24 10:11:12.123456789 +1);

/// An event with all that an envelope can have, and one with as little as possible.
pub(crate) async fn others_read_all_of_what_is_published_in_both_modes<B: TestBroker>() {
    let Some(ground) = ground::<B>() else {
        return;
    };
    // It makes what there has to be at the broker.
    let _member = Member::join(&ground.broker(), "group", &["order.placed"]).await;
    let modes = [ContentMode::Binary, ContentMode::Structured];
    let messages: Vec<_> = modes.iter().flat_map(|_| [full(), bare()]).collect();
    let reading = Reading::of(&ground, messages.len()).await;
    for (mode, two) in modes.into_iter().zip(messages.chunks(2)) {
        let broker = ground.broker_with(ground.options().content_mode(mode));
        for result in broker.publish(two).await {
            result.unwrap();
        }
    }
    let read = reading.all().await;
    assert_eq!(read.len(), messages.len());
    for (n, message) in messages.iter().enumerate() {
        let id = message.metadata.message_id.to_string();
        let told = read.iter().find(|told| told["attributes"]["id"] == id);
        let told = told.unwrap_or_else(|| panic!("{id} was not read: {read:?}"));
        let mut attributes = told["attributes"].clone();
        let time = attributes["time"].take();
        // Python's times have microseconds.
        let time = OffsetDateTime::parse(time.as_str().unwrap(), &Rfc3339).unwrap();
        assert_eq!(time, AT.replace_nanosecond(123_456_000).unwrap());
        let is_structured = modes[n / 2] == ContentMode::Structured;
        assert_eq!(attributes, expected(message, is_structured));
        let payload: Value = serde_json::from_str(&message.payload).unwrap();
        assert_eq!(told["data"], payload);
        // Others who go by the rule put what is about the same in the same partition.
        if message.metadata.aggregate.is_some() {
            assert_eq!(told["partition"], told["partition_of_key"]);
        }
    }
}

fn full() -> Message {
    let mut full = event("order.placed", "ö/17 . *>", i64::MAX);
    let metadata = &mut full.metadata;
    metadata.schema_version = 7;
    metadata.correlation_id = "Größe \"1\" %20".to_owned();
    metadata.causation_id = Some("cause".to_owned());
    metadata.producer = "a service {1}".to_owned();
    metadata.occurred_at = AT;
    metadata.traceparent =
        Some("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01".to_owned());
    metadata.tracestate = Some("a=1,b=2".to_owned());
    metadata.headers = BTreeMap::from([("X-Tenant: é".to_owned(), "\"t\"\n".to_owned())]);
    full.payload = "{ \"b\": 1.5, \"a\":\"\\u00fc👩‍👩‍👧\" }".to_owned();
    full
}

fn bare() -> Message {
    let mut bare = event("order.placed", "", 1);
    bare.metadata.aggregate = None;
    bare.metadata.occurred_at = AT;
    bare.payload = "null".to_owned();
    bare
}

/// The attributes without the time, which was compared.
fn expected(message: &Message, is_structured: bool) -> Value {
    let metadata = &message.metadata;
    let version = metadata.schema_version;
    let mut expected = json!({
        "specversion": "1.0",
        "id": metadata.message_id.to_string(),
        "source": metadata.producer,
        "type": "order.placed",
        "time": null,
        "datacontenttype": "application/json",
        // JSON has numbers, headers have not.
        "schemaversion": if is_structured { json!(version) } else { json!(version.to_string()) },
        "correlationid": metadata.correlation_id,
    });
    if let Some(aggregate) = &metadata.aggregate {
        expected["aggregatetype"] = aggregate.aggregate_type.clone().into();
        expected["aggregatesequence"] = aggregate.sequence.to_string().into();
        for name in ["subject", "aggregateid", "partitionkey"] {
            expected[name] = aggregate.aggregate_id.clone().into();
        }
        expected["source"] = "a%20service%20%7B1%7D".into();
        expected["producer"] = metadata.producer.clone().into();
        expected["causationid"] = metadata.causation_id.clone().into();
        expected["traceparent"] = metadata.traceparent.clone().into();
        expected["tracestate"] = metadata.tracestate.clone().into();
        expected["outboxheaders"] = serde_json::to_string(&metadata.headers).unwrap().into();
    }
    expected
}
