use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures_util::StreamExt;
use lapin::options::{
    BasicConsumeOptions, BasicPublishOptions, ExchangeDeclareOptions, ExchangeDeleteOptions,
    QueueBindOptions, QueueDeclareOptions, QueueDeleteOptions,
};
use lapin::types::{AMQPValue, FieldTable};
use lapin::{BasicProperties, Channel, Connection, ConnectionProperties, Consumer, ExchangeKind};
use outbox_runtime::broker::cloud_events::Binding;
use outbox_runtime::broker::{Broker, BrokerOptions, RabbitMqBroker, Topics};
use outbox_servers::Kind;

use super::{PlainMessage, Tap, TestBroker};

/// RabbitMQ.
pub struct RabbitMq;

#[async_trait]
impl TestBroker for RabbitMq {
    const KIND: Kind = Kind::RabbitMq;
    const BINDING: Binding = Binding::AMQP;
    const KEEPS_FOR_NEW_GROUPS: bool = false;

    fn open_limited(url: &str, options: BrokerOptions) -> (Arc<dyn Broker>, usize) {
        let broker = RabbitMqBroker::new(url, options).unwrap();
        (Arc::new(broker.max_message_bytes(1_000_000)), 1_000_001)
    }

    async fn send(url: &str, topics: &Topics, message: PlainMessage) {
        let exchange = exchange(topics, topics.of(&message.event_type));
        let key = format!("0.{}", message.event_type);
        publish(url, &exchange, &key, message).await;
    }

    async fn make_foreign(url: &str, topic: &str) {
        let (_connection, channel) = connect(url).await;
        let options = ExchangeDeclareOptions {
            durable: true,
            ..ExchangeDeclareOptions::default()
        };
        channel
            .exchange_declare(
                topic.into(),
                ExchangeKind::Topic,
                options,
                FieldTable::default(),
            )
            .await
            .unwrap();
    }

    async fn send_foreign(url: &str, topic: &str, message: PlainMessage) {
        publish(url, topic, "any.key", message).await;
    }

    async fn tap(url: &str, topics: &Topics, topic: &str) -> Box<dyn Tap> {
        let (connection, channel) = connect(url).await;
        let options = QueueDeclareOptions {
            exclusive: true,
            auto_delete: true,
            ..QueueDeclareOptions::default()
        };
        let queue = channel.queue_declare("".into(), options, FieldTable::default());
        let queue = queue.await.unwrap().name().clone();
        let exchange = exchange(topics, topic).into();
        let (options, arguments) = (QueueBindOptions::default(), FieldTable::default());
        let bound = channel.queue_bind(queue.clone(), exchange, "#".into(), options, arguments);
        bound.await.unwrap();
        let options = BasicConsumeOptions {
            no_ack: true,
            ..BasicConsumeOptions::default()
        };
        let consumer = channel.basic_consume(queue, "".into(), options, FieldTable::default());
        Box::new(RabbitMqTap {
            consumer: consumer.await.unwrap(),
            _connection: connection,
        })
    }

    async fn delete(url: &str, topics: &Topics, topic: &str) {
        let (_connection, channel) = connect(url).await;
        let exchange = exchange(topics, topic);
        for partition in 0..4 {
            // The suite's group; nobody tells which queues there are.
            let queue = format!("{exchange}.group.{partition}");
            let deleted = channel.queue_delete(queue.into(), QueueDeleteOptions::default());
            deleted.await.unwrap();
        }
        let deleted = channel.exchange_delete(exchange.into(), ExchangeDeleteOptions::default());
        deleted.await.unwrap();
    }
}

struct RabbitMqTap {
    consumer: Consumer,
    _connection: Connection,
}

#[async_trait]
impl Tap for RabbitMqTap {
    async fn next(&mut self) -> PlainMessage {
        let next = tokio::time::timeout(Duration::from_secs(10), self.consumer.next());
        let message = next.await.expect("a message").expect("no end").unwrap();
        let properties = &message.properties;
        let headers = properties.headers().iter().flatten();
        let (_, event_type) = message.routing_key.as_str().split_once('.').unwrap();
        PlainMessage {
            event_type: event_type.to_owned(),
            key: String::new(),
            content_type: properties.content_type().as_ref().map(ToString::to_string),
            headers: headers
                .filter_map(|(name, value)| match value {
                    AMQPValue::LongString(text) => Some((name.to_string(), text.to_string())),
                    _ => None,
                })
                .collect(),
            body: message.data,
        }
    }
}

fn exchange(topics: &Topics, topic: &str) -> String {
    format!("{}.{topic}", topics.namespace())
}

async fn connect(url: &str) -> (Connection, Channel) {
    let connection = Connection::connect(url, ConnectionProperties::default())
        .await
        .unwrap();
    let channel = connection.create_channel().await.unwrap();
    channel.confirm_select(Default::default()).await.unwrap();
    (connection, channel)
}

async fn publish(url: &str, exchange: &str, key: &str, message: PlainMessage) {
    let (_connection, channel) = connect(url).await;
    let mut headers = FieldTable::default();
    for (name, value) in message.headers {
        headers.insert(name.into(), AMQPValue::LongString(value.into()));
    }
    let mut properties = BasicProperties::default().with_headers(headers);
    if let Some(content_type) = message.content_type {
        properties = properties.with_content_type(content_type.into());
    }
    let options = BasicPublishOptions::default();
    let sent = channel.basic_publish(
        exchange.into(),
        key.into(),
        options,
        &message.body,
        properties,
    );
    let confirmed = sent.await.unwrap().await.unwrap();
    assert!(confirmed.is_ack(), "{confirmed:?}");
}
