use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use outbox_runtime::broker::cloud_events::Binding;
use outbox_runtime::broker::{Broker, BrokerOptions, RedisBroker, Topics};
use outbox_servers::Kind;
use redis::aio::MultiplexedConnection;
use redis::streams::{StreamReadOptions, StreamReadReply};
use redis::{AsyncCommands, AsyncConnectionConfig, Client};

use super::{PlainMessage, Tap, TestBroker};

/// How many partitions a topic has at most in the tests.
const PARTITIONS: u16 = 16;

/// Redis Streams, by the client `redis`.
pub struct Redis;

impl Redis {
    /// A connection that is not ours.
    pub async fn connect(url: &str) -> MultiplexedConnection {
        let config =
            AsyncConnectionConfig::new().set_response_timeout(Some(Duration::from_secs(30)));
        Client::open(url)
            .expect("a URL")
            .get_multiplexed_async_connection_with_config(&config)
            .await
            .expect("Redis answers")
    }

    /// The key of a topic's partition.
    pub fn stream(topics: &Topics, topic: &str, partition: u16) -> String {
        format!("{{{}.{topic}.{partition}}}", topics.namespace())
    }
}

#[async_trait]
impl TestBroker for Redis {
    const KIND: Kind = Kind::Redis;
    const BINDING: Binding = Binding::REDIS;
    const KEEPS_FOR_NEW_GROUPS: bool = true;

    fn open_limited(url: &str, options: BrokerOptions) -> (Arc<dyn Broker>, usize) {
        let broker = RedisBroker::new(url, options).unwrap();
        (Arc::new(broker.max_message_bytes(10_000)), 10_000)
    }

    async fn send(url: &str, topics: &Topics, message: PlainMessage) {
        let topic = topics.of(&message.event_type);
        add(url, &Self::stream(topics, topic, 0), message).await;
    }

    async fn make_foreign(_url: &str, _topic: &str) {
        // The first entry makes it.
    }

    async fn send_foreign(url: &str, topic: &str, message: PlainMessage) {
        add(url, topic, message).await;
    }

    async fn tap(url: &str, topics: &Topics, topic: &str) -> Box<dyn Tap> {
        let streams = (0..PARTITIONS).map(|partition| Self::stream(topics, topic, partition));
        Box::new(Reading {
            connection: Self::connect(url).await,
            seen: streams.map(|stream| (stream, "0".to_owned())).collect(),
        })
    }

    async fn delete(url: &str, topics: &Topics, topic: &str) {
        let mut connection = Self::connect(url).await;
        let streams: Vec<_> = (0..PARTITIONS)
            .map(|partition| Self::stream(topics, topic, partition))
            .collect();
        let _: u64 = connection.del(streams).await.expect("the streams go");
    }
}

async fn add(url: &str, stream: &str, message: PlainMessage) {
    let mut fields: Vec<(String, Vec<u8>)> = message
        .headers
        .into_iter()
        .map(|(name, value)| (name, value.into_bytes()))
        .collect();
    if let Some(content_type) = message.content_type {
        fields.push(("content-type".to_owned(), content_type.into_bytes()));
    }
    fields.push(("data".to_owned(), message.body));
    let mut connection = Redis::connect(url).await;
    let id: Option<String> = connection.xadd(stream, "*", &fields).await.expect("XADD");
    assert!(id.is_some());
}

struct Reading {
    connection: MultiplexedConnection,
    /// How far each stream was read.
    seen: BTreeMap<String, String>,
}

#[async_trait]
impl Tap for Reading {
    async fn next(&mut self) -> PlainMessage {
        let (streams, ids): (Vec<_>, Vec<_>) = self.seen.clone().into_iter().unzip();
        let options = StreamReadOptions::default().count(1).block(10_000);
        let reply: Option<StreamReadReply> = self
            .connection
            .xread_options(&streams, &ids, &options)
            .await
            .expect("XREAD");
        let reply = reply.expect("an entry within 10 s");
        let of_stream = reply.keys.into_iter().next().expect("a stream");
        let entry = of_stream.ids.into_iter().next().expect("an entry");
        self.seen.insert(of_stream.key, entry.id.clone());
        let mut message = PlainMessage::default();
        for name in entry.map.keys() {
            let value: Vec<u8> = entry.get(name).expect("bytes");
            let text = String::from_utf8_lossy(&value).into_owned();
            match name.as_str() {
                "data" => message.body = value,
                "content-type" => message.content_type = Some(text),
                _ => drop(message.headers.insert(name.clone(), text)),
            }
        }
        message
    }
}
