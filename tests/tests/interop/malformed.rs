//! What others publish and is no event.

use std::collections::BTreeMap;

use outbox_tests::brokers::TestBroker;
use outbox_tests::brokers::suite::wait_until;
use serde_json::{Value, json};

use crate::python::{ground, write};
use crate::service::Service;

const STRUCTURED: &str = "application/cloudevents+json";
const JSON: &str = "application/json";

/// An event whose content is no JSON though it says so: its handler's consumer keeps it.
pub(crate) async fn what_others_publish_and_no_handler_can_read_is_kept<B: TestBroker>() {
    let Some(ground) = ground::<B>() else {
        return;
    };
    let service = Service::start(&ground).await;
    let line = |id: &str, data: Value| {
        json!({
            "mode": "binary",
            "attributes": {
                "id": id, "source": "/notes", "type": "note.taken", "datacontenttype": JSON,
            },
            "data": data,
        })
    };
    let lines = [
        line("C-1", "no JSON".into()),
        line("C-2", json!({"other": 1})),
        line("C-3", json!({"sequence": 3})),
    ];
    write(&ground, &lines).await;
    let kept = "SELECT payload FROM inbox_parked WHERE consumer = 'interop' AND state = 'dead'";
    wait_until("all are handled or kept", async || {
        let mut kept = service.texts(kept).await;
        kept.sort();
        service.effects().await == 1 && kept == ["no JSON", r#"{"other": 1}"#]
    })
    .await;
}

/// It stands in nobody's way, and an operator finds all of it.
pub(crate) async fn what_others_publish_and_is_no_event_is_kept_with_its_bytes<B: TestBroker>() {
    let Some(ground) = ground::<B>() else {
        return;
    };
    let service = Service::start(&ground).await;
    // Content type, specversion, body in base64; how it is kept, and why.
    let cases = [
        // hello \x00\xff
        (None, None, "aGVsbG8gAP8=", "aGVsbG8gAP8=", "no CloudEvent"),
        // just text
        (
            Some("text/plain"),
            None,
            "anVzdCB0ZXh0",
            "just text",
            "no CloudEvent",
        ),
        // {"sequence":1}
        (
            Some(JSON),
            Some("2.0"),
            "eyJzZXF1ZW5jZSI6MX0=",
            r#"{"sequence":1}"#,
            "version 2.0",
        ),
        // \xff\xfe
        (Some(JSON), Some("1.0"), "//4=", "//4=", "not UTF-8"),
        // <note/>
        (
            Some("application/xml"),
            Some("1.0"),
            "PG5vdGUvPg==",
            "<note/>",
            "application/xml",
        ),
        // {"specversion":
        (
            Some(STRUCTURED),
            None,
            "eyJzcGVjdmVyc2lvbiI6",
            r#"{"specversion":"#,
            "no JSON object",
        ),
        // {"specversion":"0.3","id":"1","source":"/n","type":"note.taken"}
        (
            Some(STRUCTURED),
            None,
            "eyJzcGVjdmVyc2lvbiI6IjAuMyIsImlkIjoiMSIsInNvdXJjZSI6Ii9uIiwidHlwZSI6Im5vdGUudGFrZW4ifQ==",
            r#"{"specversion":"0.3","id":"1","source":"/n","type":"note.taken"}"#,
            "version 0.3",
        ),
        // []
        (
            Some("application/cloudevents-batch+json"),
            None,
            "W10=",
            "[]",
            "one by one",
        ),
    ];
    let mut lines: Vec<Value> = cases
        .iter()
        .map(|(content_type, specversion, body, ..)| {
            let mut headers = BTreeMap::from([("x-who".to_owned(), "them")]);
            if let Some(specversion) = specversion {
                let attributes = [
                    ("specversion", *specversion),
                    ("id", "1"),
                    ("source", "/notes"),
                    ("type", "note.taken"),
                ];
                headers.extend(
                    attributes.map(|(name, value)| (format!("{}{name}", B::BINDING.prefix), value)),
                );
            }
            json!({
                "mode": "raw", "type": "note.taken", "key": "a",
                "content_type": content_type, "headers": headers, "body": body,
            })
        })
        .collect();
    lines.push(json!({
        "mode": "binary",
        "attributes": {
            "id": "A-1", "source": "/notes", "type": "note.taken", "partitionkey": "a",
        },
        "data": {"sequence": 1},
    }));
    write(&ground, &lines).await;
    wait_until("the one behind them is handled", async || {
        service.effects().await == 1
    })
    .await;
    let kept = "SELECT payload FROM inbox_parked WHERE consumer = '' AND state = 'dead'";
    let mut expected: Vec<_> = cases.iter().map(|case| case.3.to_owned()).collect();
    expected.sort();
    wait_until("all are kept", async || {
        let mut kept = service.texts(kept).await;
        kept.sort();
        kept == expected
    })
    .await;
    for (.., payload, says) in cases {
        let about =
            |column: &str| format!("SELECT {column} FROM inbox_parked WHERE payload = '{payload}'");
        let cause = service.texts(&about("last_cause")).await;
        assert!(cause[0].contains(says), "{payload}: {cause:?}");
        let headers = service.texts(&about("headers")).await;
        assert!(headers[0].contains("them"), "{payload}: {headers:?}");
    }
}
