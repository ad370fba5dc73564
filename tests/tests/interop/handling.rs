//! What we make of events that others publish.

use std::collections::BTreeMap;
use std::time::Duration;

use outbox_runtime::{AggregateRef, Metadata};
use outbox_servers::Kind;
use outbox_tests::brokers::TestBroker;
use outbox_tests::brokers::suite::wait_until;
use serde_json::{Value, json};
use time::macros::datetime;
use uuid::Uuid;

use crate::python::{ground, write};
use crate::service::Service;

/// Attributes that any producer has, in all modes, each event twice in a row and all once more.
pub(crate) async fn what_others_publish_has_its_effect_once_and_in_order<B: TestBroker>() {
    let Some(ground) = ground::<B>() else {
        return;
    };
    let service = Service::start(&ground).await;
    let mut lines = Vec::new();
    for sequence in 1..=12 {
        for key in ["a", "Größe 7"] {
            let line = plain::<B>(key, sequence);
            lines.extend([line.clone(), line]);
        }
    }
    write(&ground, &lines).await;
    wait_until("all are handled", async || service.effects().await >= 24).await;
    lines.push(plain::<B>("a", 13));
    write(&ground, &lines).await;
    wait_until("a later one is handled", async || {
        service
            .number("SELECT count(*) FROM effect WHERE sequence = 13")
            .await
            == 1
    })
    .await;
    // What is on its way again must not have a second effect.
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(service.effects().await, 25);
    assert_eq!(service.number("SELECT count(*) FROM inbox_parked").await, 0);
    let out_of_order = "SELECT count(*) FROM effect AS earlier JOIN effect AS later \
        ON later.aggregate = earlier.aggregate AND later.id > earlier.id \
        WHERE later.sequence <= earlier.sequence";
    assert_eq!(service.number(out_of_order).await, 0);
    let other_texts = "SELECT count(*) FROM effect WHERE text <> 'of version 1'";
    assert_eq!(service.number(other_texts).await, 0);
    let all = service.texts("SELECT metadata FROM effect").await;
    for metadata in all.iter().map(|text| metadata(text)) {
        let aggregate = metadata.aggregate.unwrap();
        assert_eq!(aggregate.aggregate_type, "/notes");
        assert_eq!(aggregate.sequence, 0);
        assert!(["a", "Größe 7"].contains(&aggregate.aggregate_id.as_str()));
        assert_eq!(metadata.message_id.as_uuid().get_version_num(), 8);
        let (key, sequence) = metadata.correlation_id.split_once('#').unwrap();
        assert_eq!(key, aggregate.aggregate_id);
        assert!((1..=13).contains(&sequence.parse::<i64>().unwrap()));
        assert_eq!(metadata.event_type, "note.taken");
        assert_eq!(metadata.schema_version, 1);
        assert_eq!(metadata.producer, "/notes");
        assert_eq!(metadata.causation_id, None);
        assert_eq!(metadata.occurred_at, datetime!(2026-02-24 9:11:12.123 UTC));
        let tenant = ("tenant".to_owned(), "t 1".to_owned());
        assert_eq!(metadata.headers, BTreeMap::from([tenant]));
    }
}

/// Attributes of ours, all and none.
pub(crate) async fn what_others_know_of_us_is_understood<B: TestBroker>() {
    let Some(ground) = ground::<B>() else {
        return;
    };
    let service = Service::start(&ground).await;
    let mut lines = Vec::new();
    let mut expected = Vec::new();
    for (sequence, style) in styles::<B>().into_iter().enumerate() {
        let id = Uuid::now_v7();
        let trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
        let mut line = json!({
            "attributes": {
                "id": id, "source": "/notes", "type": "note.taken", "subject": "17 ü",
                "time": "2026-02-24T10:11:12.123+01:00", "datacontenttype": "application/json",
                "partitionkey": "17 ü", "aggregatetype": "Note", "aggregateid": "17 ü",
                "aggregatesequence": "9223372036854775807", "schemaversion": 2,
                "correlationid": "process 1%", "causationid": "cause", "producer": "their notes",
                "traceparent": trace, "tracestate": "a=1,b=2", "outboxheaders": r#"{"Tenant":"é"}"#,
            },
            "data": {"sequence": sequence, "text": "Hällo"},
        });
        line.as_object_mut().unwrap().extend(style);
        lines.push(line);
        expected.push(json!({
            "message_id": id, "event_type": "note.taken", "schema_version": 2,
            "aggregate": {
                "aggregate_type": "Note", "aggregate_id": "17 ü", "sequence": i64::MAX,
            },
            "correlation_id": "process 1%", "causation_id": "cause", "producer": "their notes",
            "occurred_at": "2026-02-24T10:11:12.123+01:00",
            "traceparent": trace, "tracestate": "a=1,b=2", "headers": {"Tenant": "é"},
        }));
    }
    // Nothing that would order it.
    lines.push(json!({
        "mode": "binary",
        "attributes": {
            "id": "B-1", "source": "/notes", "type": "note.taken", "subject": "17",
        },
        "data": {"sequence": 99},
    }));
    write(&ground, &lines).await;
    let count = i64::try_from(lines.len()).unwrap();
    wait_until("all are handled", async || service.effects().await == count).await;
    let told = "SELECT metadata FROM effect WHERE text = 'Hällo' ORDER BY sequence";
    let told = service.texts(told).await;
    assert_eq!(told.len(), expected.len());
    for (told, expected) in told.iter().zip(expected) {
        let expected = expected.to_string();
        let (told, expected) = (metadata(told), metadata(&expected));
        assert_eq!(told, expected);
    }
    let other = service
        .texts("SELECT metadata FROM effect WHERE sequence = 99")
        .await;
    let other = metadata(&other[0]);
    assert_eq!(other.aggregate, None::<AggregateRef>);
    assert_eq!(other.headers["subject"], "17");
    assert_eq!(other.correlation_id, "B-1");
}

/// An event by somebody who knows nothing of us.
fn plain<B: TestBroker>(key: &str, sequence: usize) -> Value {
    let mut styles = styles::<B>();
    let mut line = json!({
        "attributes": {
            "id": format!("{key}#{sequence}"), "source": "/notes", "type": "note.taken",
            "time": "2026-02-24T10:11:12.123+01:00", "partitionkey": key, "tenant": "t 1",
        },
        "data": {"sequence": sequence},
    });
    let style = styles.swap_remove(sequence % styles.len());
    line.as_object_mut().unwrap().extend(style);
    line
}

/// The ways to write an event that there are for a broker.
fn styles<B: TestBroker>() -> Vec<serde_json::Map<String, Value>> {
    let mut styles = vec![json!({ "mode": "binary" }), json!({ "mode": "structured" })];
    if B::KIND == Kind::RabbitMq {
        styles.push(json!({ "mode": "binary", "binding": "knative" }));
    }
    let objects = styles.into_iter().map(|style| match style {
        Value::Object(style) => style,
        _ => unreachable!("objects only"),
    });
    objects.collect()
}

fn metadata(json: &str) -> Metadata {
    serde_json::from_str(json).unwrap()
}
