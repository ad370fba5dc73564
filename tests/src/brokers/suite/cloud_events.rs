//! What clients that are not ours see and send.

use std::collections::BTreeMap;
use std::time::Duration;

use outbox_runtime::broker::{ContentMode, ForeignEvent, ForeignTopic};
use uuid::Uuid;

use super::delivering::published;
use super::{Ground, Member, event, wait_until};
use crate::brokers::{PlainMessage, TestBroker};

/// Attributes are the protocol's headers.
pub async fn a_plain_client_sees_a_cloud_event_in_binary_mode<B: TestBroker>() {
    let Some(ground) = Ground::<B>::shared() else {
        return;
    };
    let broker = ground.broker();
    let _member = Member::join(&broker, "group", &["order.placed"]).await;
    let mut tap = B::tap(&ground.url, &ground.topics, "events").await;
    let message = event("order.placed", "order 17", 3);
    published(&broker, std::slice::from_ref(&message)).await;
    let seen = tap.next().await;
    assert_eq!(seen.body, message.payload.as_bytes());
    assert_eq!(seen.content_type.as_deref(), Some("application/json"));
    let space = match B::BINDING.is_percent_encoded {
        true => "%20",
        false => " ",
    };
    for (name, value) in [
        ("specversion", "1.0"),
        ("id", &message.metadata.message_id.to_string()),
        ("type", "order.placed"),
        ("source", "suite"),
        ("subject", &format!("order{space}17")),
        ("partitionkey", &format!("order{space}17")),
        ("aggregatetype", "Thing"),
        ("aggregatesequence", "3"),
        ("schemaversion", "1"),
        (
            "correlationid",
            &format!("correlation{space}of{space}order{space}17"),
        ),
    ] {
        let header = format!("{}{name}", B::BINDING.prefix);
        assert_eq!(
            seen.headers.get(&header).map(String::as_str),
            Some(value),
            "{header}"
        );
    }
}

/// All is one JSON object.
pub async fn a_plain_client_sees_a_cloud_event_in_structured_mode<B: TestBroker>() {
    let Some(ground) = Ground::<B>::shared() else {
        return;
    };
    let broker = ground.broker_with(ground.options().content_mode(ContentMode::Structured));
    let _member = Member::join(&broker, "group", &["order.placed"]).await;
    let mut tap = B::tap(&ground.url, &ground.topics, "events").await;
    let message = event("order.placed", "17", 3);
    published(&broker, std::slice::from_ref(&message)).await;
    let seen = tap.next().await;
    let content_type = seen.content_type.as_deref();
    assert_eq!(content_type, Some("application/cloudevents+json"));
    let json: serde_json::Value = serde_json::from_slice(&seen.body).unwrap();
    assert_eq!(json["specversion"], "1.0");
    assert_eq!(json["id"], message.metadata.message_id.to_string());
    assert_eq!(json["subject"], "17");
    assert_eq!(json["schemaversion"], 1);
    assert_eq!(json["data"]["sequence"], 3);
}

/// In both modes, with an id that is no UUID.
pub async fn a_cloud_event_without_our_extensions_is_delivered<B: TestBroker>() {
    let Some(ground) = Ground::<B>::shared() else {
        return;
    };
    let broker = ground.broker();
    let mut member = Member::join(&broker, "group", &["order.placed"]).await;
    let in_binary = PlainMessage {
        content_type: Some("application/json; charset=utf-8".to_owned()),
        headers: attributes::<B>("A-1"),
        body: br#"{"a": 1}"#.to_vec(),
        ..plain("order.placed", "17")
    };
    let structured = PlainMessage {
        content_type: Some("application/cloudevents+json".to_owned()),
        body: br#"{"specversion":"1.0","id":"A-1","source":"/shop","type":"order.placed",
            "partitionkey":"17","data":{"a": 1}}"#
            .to_vec(),
        ..plain("order.placed", "17")
    };
    for message in [in_binary, structured] {
        B::send(&ground.url, &ground.topics, message).await;
        let delivery = member.next().await;
        assert_eq!(delivery.malformation(), None);
        let metadata = &delivery.message.metadata;
        assert_eq!(delivery.message.payload, r#"{"a": 1}"#);
        assert_eq!(metadata.event_type, "order.placed");
        assert_eq!(metadata.message_id.as_uuid().get_version_num(), 8);
        assert_eq!(metadata.correlation_id, "A-1");
        assert_eq!(metadata.producer, "/shop");
        assert_eq!(metadata.schema_version, 1);
        assert_eq!(metadata.aggregate.as_ref().unwrap().aggregate_id, "17");
        delivery.ack().await.unwrap();
    }
}

/// It stands in nobody's way, and comes with all that it had.
pub async fn what_is_no_cloud_event_is_delivered_with_its_bytes<B: TestBroker>() {
    let Some(ground) = Ground::<B>::shared() else {
        return;
    };
    let broker = ground.broker();
    let mut member = Member::join(&broker, "group", &["order.placed"]).await;
    let hello = PlainMessage {
        headers: BTreeMap::from([("x-who".to_owned(), "me".to_owned())]),
        body: b"hello".to_vec(),
        ..plain("order.placed", "17")
    };
    let mut headers = attributes::<B>("A-2");
    headers.remove(&format!("{}specversion", B::BINDING.prefix));
    let bytes = PlainMessage {
        content_type: Some("application/json".to_owned()),
        headers,
        body: vec![0, 0xff, 0xfe],
        ..plain("order.placed", "17")
    };
    let mut ids = Vec::new();
    for (message, payload, says, event_type) in [
        (hello, "hello", "no CloudEvent", "malformed"),
        (bytes, "AP/+", "specversion", "order.placed"),
    ] {
        B::send(&ground.url, &ground.topics, message).await;
        let delivery = member.next().await;
        let reason = delivery.malformation().expect("it is no message");
        assert!(reason.contains(says), "{reason}");
        assert_eq!(delivery.message.payload, payload);
        let metadata = &delivery.message.metadata;
        assert_eq!(metadata.event_type, event_type);
        if payload == "hello" {
            let who = metadata
                .headers
                .iter()
                .find(|(name, _)| name.eq_ignore_ascii_case("x-who"));
            assert_eq!(
                who.map(|(_, value)| value.as_str()),
                Some("me"),
                "{metadata:?}"
            );
        } else {
            assert_eq!(metadata.headers["outbox-payload-encoding"], "base64");
        }
        ids.push(metadata.message_id);
        // The same id when it comes again.
        drop(delivery);
        let again = member.next().await;
        assert_eq!(again.message.metadata.message_id, *ids.last().unwrap());
        again.ack().await.unwrap();
    }
    assert_ne!(ids[0], ids[1]);
    published(&broker, &[event("order.placed", "17", 1)]).await;
    assert_eq!(member.next().await.malformation(), None);
}

/// What others write becomes events, by a mapping.
pub async fn a_foreign_topic_is_mapped<B: TestBroker>() {
    let Some(ground) = Ground::<B>::shared() else {
        return;
    };
    let topic = format!("billing{}", Uuid::new_v4().simple());
    B::make_foreign(&ground.url, &topic).await;
    let mapped = ForeignTopic::mapped(&topic, |raw| {
        let text = std::str::from_utf8(&raw.body)?;
        match text.split_once(' ') {
            Some(("paid", invoice)) => Ok(Some(
                ForeignEvent::new("InvoicePaid", format!("{{\"invoice\":\"{invoice}\"}}"))
                    .id(format!("{invoice} paid"))
                    .aggregate("Invoice", invoice)
                    .header("who", raw.header("X-Who").unwrap_or_default()),
            )),
            Some(("sent", _)) => Ok(None),
            Some(("boom", _)) => panic!("on purpose"),
            _ => Err("neither paid nor sent".into()),
        }
    });
    let broker = ground.broker_with(ground.options().foreign(mapped));
    let mut member = Member::join(&broker, "group", &["InvoicePaid"]).await;
    for body in ["sent 1", "paid 1", "what", "boom 1", "paid 2"] {
        let message = PlainMessage {
            headers: BTreeMap::from([("X-Who".to_owned(), "them".to_owned())]),
            body: body.as_bytes().to_vec(),
            ..plain("anything", "1")
        };
        B::send_foreign(&ground.url, &topic, message).await;
    }
    let mut seen = Vec::new();
    for _ in 0..4 {
        let delivery = member.next().await;
        let text = delivery.message.payload.clone();
        seen.push((text, delivery.malformation().map(ToOwned::to_owned)));
        if delivery.malformation().is_none() {
            assert_eq!(delivery.message.metadata.headers["who"], "them");
            assert_eq!(delivery.message.metadata.producer, topic);
        }
        delivery.ack().await.unwrap();
    }
    assert_eq!(seen[0], (r#"{"invoice":"1"}"#.to_owned(), None));
    assert!(
        seen[1]
            .1
            .as_ref()
            .unwrap()
            .contains("neither paid nor sent"),
        "{seen:?}"
    );
    assert!(seen[2].1.as_ref().unwrap().contains("panicked"), "{seen:?}");
    assert_eq!(seen[3], (r#"{"invoice":"2"}"#.to_owned(), None));
}

/// Its owners are late, and all else goes on meanwhile.
pub async fn a_foreign_topic_that_is_missing_stops_nothing_and_is_read_once_it_is_there<
    B: TestBroker,
>() {
    let Some(ground) = Ground::<B>::shared() else {
        return;
    };
    let topic = format!("late{}", Uuid::new_v4().simple());
    let theirs = ForeignTopic::mapped(&topic, |_| {
        let event = ForeignEvent::new("Theirs", "{}").id("theirs-1");
        Ok(Some(event.aggregate("Late", "1")))
    });
    let broker = ground.broker_with(ground.options().foreign(theirs));
    let mut member = Member::join(&broker, "group", &["Ours", "Theirs"]).await;
    let ours: Vec<_> = (0..20).map(|n| event("Ours", &n.to_string(), 1)).collect();
    published(&broker, &ours).await;
    assert_eq!(member.take_distinct(20).await.len(), 20);
    B::make_foreign(&ground.url, &topic).await;
    // Where nothing is kept for who is not there yet, it is sent until it is read.
    let mut arrived = false;
    wait_until("the foreign topic is read", async || {
        B::send_foreign(&ground.url, &topic, plain("anything", "1")).await;
        while let Some(delivery) = member.next_within(Duration::from_millis(500)).await {
            arrived |= delivery.message.metadata.event_type == "Theirs";
            delivery.ack().await.unwrap();
        }
        arrived
    })
    .await;
    published(&broker, &[event("Ours", "1", 2)]).await;
    while member.take().await.metadata.event_type != "Ours" {}
}

fn plain(event_type: &str, key: &str) -> PlainMessage {
    PlainMessage {
        event_type: event_type.to_owned(),
        key: key.to_owned(),
        ..PlainMessage::default()
    }
}

/// The attributes of a CloudEvent by somebody else.
fn attributes<B: TestBroker>(id: &str) -> BTreeMap<String, String> {
    [
        ("specversion", "1.0"),
        ("id", id),
        ("source", "/shop"),
        ("type", "order.placed"),
        ("partitionkey", "17"),
    ]
    .map(|(name, value)| (format!("{}{name}", B::BINDING.prefix), value.to_owned()))
    .into()
}
