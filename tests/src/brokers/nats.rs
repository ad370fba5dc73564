use std::time::Duration;

use async_nats::jetstream::consumer::pull::OrderedConfig;
use async_nats::jetstream::consumer::{DeliverPolicy, pull};
use async_nats::jetstream::{self, Context, stream};
use async_nats::{Client, HeaderMap};
use async_trait::async_trait;
use futures_util::StreamExt;
use outbox_runtime::broker::Topics;
use outbox_runtime::broker::cloud_events::Binding;
use outbox_servers::Kind;

use super::{PlainMessage, Tap, TestBroker};

/// NATS JetStream.
pub struct Nats;

#[async_trait]
impl TestBroker for Nats {
    const KIND: Kind = Kind::Nats;
    const BINDING: Binding = Binding::NATS;
    const KEEPS_FOR_NEW_GROUPS: bool = true;

    async fn send(url: &str, topics: &Topics, message: PlainMessage) {
        let topic = topics.of(&message.event_type);
        let namespace = topics.namespace();
        let subject = format!("{namespace}.{topic}.0.{}.any", message.event_type);
        publish(url, subject, message).await;
    }

    async fn make_foreign(url: &str, topic: &str) {
        let config = stream::Config {
            name: topic.to_owned(),
            subjects: vec![format!("{topic}.>")],
            ..stream::Config::default()
        };
        connect(url).await.1.create_stream(config).await.unwrap();
    }

    async fn send_foreign(url: &str, topic: &str, message: PlainMessage) {
        publish(url, format!("{topic}.any"), message).await;
    }

    async fn tap(url: &str, topics: &Topics, topic: &str) -> Box<dyn Tap> {
        let (_, jetstream) = connect(url).await;
        let name = format!("{}_{topic}", topics.namespace());
        let stream = jetstream.get_stream(name).await.unwrap();
        let config = OrderedConfig {
            deliver_policy: DeliverPolicy::All,
            ..OrderedConfig::default()
        };
        let consumer = stream.create_consumer(config).await.unwrap();
        Box::new(NatsTap(consumer.messages().await.unwrap()))
    }

    async fn delete(url: &str, topics: &Topics, topic: &str) {
        let name = format!("{}_{topic}", topics.namespace());
        connect(url).await.1.delete_stream(name).await.unwrap();
    }
}

struct NatsTap(pull::Ordered);

#[async_trait]
impl Tap for NatsTap {
    async fn next(&mut self) -> PlainMessage {
        let next = tokio::time::timeout(Duration::from_secs(10), self.0.next());
        let message = next.await.expect("a message").expect("no end").unwrap();
        let mut plain = PlainMessage {
            body: message.payload.to_vec(),
            ..PlainMessage::default()
        };
        for (name, values) in message.headers.iter().flat_map(HeaderMap::iter) {
            let (name, value) = (name.to_string(), values[0].to_string());
            match name.eq_ignore_ascii_case("content-type") {
                true => plain.content_type = Some(value),
                false => drop(plain.headers.insert(name, value)),
            }
        }
        plain
    }
}

async fn connect(url: &str) -> (Client, Context) {
    let client = async_nats::connect(url).await.unwrap();
    (client.clone(), jetstream::new(client))
}

async fn publish(url: &str, subject: String, message: PlainMessage) {
    let mut headers = HeaderMap::new();
    for (name, value) in message.headers {
        headers.insert(name, value);
    }
    if let Some(content_type) = message.content_type {
        headers.insert("content-type", content_type);
    }
    let (_, jetstream) = connect(url).await;
    let published = jetstream.publish_with_headers(subject, headers, message.body.into());
    published.await.unwrap().await.unwrap();
}
