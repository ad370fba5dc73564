use std::time::{Duration, Instant};

use async_trait::async_trait;
use outbox_runtime::broker::Topics;
use outbox_runtime::broker::cloud_events::Binding;
use outbox_servers::Kind;
use rdkafka::ClientConfig;
use rdkafka::admin::{AdminClient, AdminOptions, NewTopic, TopicReplication};
use rdkafka::client::DefaultClientContext;
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::error::RDKafkaErrorCode;
use rdkafka::message::{Header, Headers, Message, OwnedHeaders};
use rdkafka::producer::{FutureProducer, FutureRecord};
use rdkafka::{Offset, TopicPartitionList};

use super::{PlainMessage, Tap, TestBroker};

/// Kafka.
pub struct Kafka;

const CONTENT_TYPE: &str = "content-type";
const PATIENCE: Duration = Duration::from_secs(10);

#[async_trait]
impl TestBroker for Kafka {
    const KIND: Kind = Kind::Kafka;
    const BINDING: Binding = Binding::KAFKA;
    const KEEPS_FOR_NEW_GROUPS: bool = true;
    const HAS_SECRETS: bool = false;

    async fn send(url: &str, topics: &Topics, message: PlainMessage) {
        let topic = full_name(topics, topics.of(&message.event_type));
        produce(url, &topic, message).await;
    }

    async fn make_foreign(url: &str, topic: &str) {
        let admin: AdminClient<DefaultClientContext> = config(url).create().unwrap();
        let wanted = NewTopic::new(topic, 2, TopicReplication::Fixed(1));
        let made = admin.create_topics([&wanted], &AdminOptions::new()).await;
        match made.unwrap().remove(0) {
            Ok(_) | Err((_, RDKafkaErrorCode::TopicAlreadyExists)) => {}
            Err(error) => panic!("{error:?}"),
        }
    }

    async fn send_foreign(url: &str, topic: &str, message: PlainMessage) {
        produce(url, topic, message).await;
    }

    async fn tap(url: &str, topics: &Topics, topic: &str) -> Box<dyn Tap> {
        let (mut config, topic) = (config(url), full_name(topics, topic));
        // It joins none, but to be given partitions needs a name.
        config.set("group.id", "tap");
        let listening = tokio::task::spawn_blocking(move || {
            let consumer: BaseConsumer = config.create().unwrap();
            let metadata = consumer.fetch_metadata(Some(&topic), PATIENCE).unwrap();
            let mut all = TopicPartitionList::new();
            for partition in metadata.topics()[0].partitions() {
                all.add_partition_offset(&topic, partition.id(), Offset::Beginning)
                    .unwrap();
            }
            consumer.assign(&all).unwrap();
            consumer
        });
        Box::new(Listening(Some(listening.await.unwrap())))
    }

    async fn delete(url: &str, topics: &Topics, topic: &str) {
        let admin: AdminClient<DefaultClientContext> = config(url).create().unwrap();
        let topic = full_name(topics, topic);
        let gone = admin.delete_topics(&[&topic], &AdminOptions::new()).await;
        gone.unwrap().remove(0).unwrap();
    }
}

/// A consumer without a group.
struct Listening(Option<BaseConsumer>);

#[async_trait]
impl Tap for Listening {
    async fn next(&mut self) -> PlainMessage {
        let consumer = self.0.take().expect("nothing failed before");
        let (consumer, message) = tokio::task::spawn_blocking(move || {
            let message = received(&consumer);
            (consumer, message)
        })
        .await
        .unwrap();
        self.0 = Some(consumer);
        message
    }
}

fn received(consumer: &BaseConsumer) -> PlainMessage {
    let began = Instant::now();
    while began.elapsed() < PATIENCE {
        // Errors pass: a server that was just started is not found at once.
        if let Some(Ok(message)) = consumer.poll(Duration::from_millis(100)) {
            let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
            let mut plain = PlainMessage {
                key: message.key().map(text).unwrap_or_default(),
                body: message.payload().unwrap_or_default().to_vec(),
                ..PlainMessage::default()
            };
            let headers = message.headers();
            for header in headers.iter().flat_map(|headers| headers.iter()) {
                let value = text(header.value.unwrap_or_default());
                match header.key {
                    CONTENT_TYPE => plain.content_type = Some(value),
                    name => drop(plain.headers.insert(name.to_owned(), value)),
                }
            }
            return plain;
        }
    }
    panic!("no message came");
}

async fn produce(url: &str, topic: &str, message: PlainMessage) {
    let producer: FutureProducer = config(url).create().unwrap();
    let mut headers = OwnedHeaders::new();
    let content_type = message
        .content_type
        .map(|value| (CONTENT_TYPE.to_owned(), value));
    for (key, value) in content_type.into_iter().chain(message.headers) {
        headers = headers.insert(Header {
            key: &key,
            value: Some(&value),
        });
    }
    let record = FutureRecord::to(topic)
        .key(&message.key)
        .payload(&message.body)
        .headers(headers);
    producer.send(record, PATIENCE).await.unwrap();
}

fn config(url: &str) -> ClientConfig {
    let mut config = ClientConfig::new();
    let servers = url.strip_prefix("kafka://").unwrap();
    config.set("bootstrap.servers", servers);
    config
}

fn full_name(topics: &Topics, topic: &str) -> String {
    format!("{}.{topic}", topics.namespace())
}
