//! What the tests of Redis share.

use std::num::NonZeroU16;
use std::time::Duration;

use outbox_runtime::Message;
use outbox_runtime::broker::{
    BrokerOptions, Deliveries, Delivery, PublishError, Publisher, RedisBroker, Subscriber,
    Subscription,
};
use outbox_tests::brokers::Redis;
use outbox_tests::brokers::suite::Ground;
use redis::aio::MultiplexedConnection;
use redis::{FromRedisValue, cmd};

/// The only stream of a test whose topic has one partition.
pub fn stream(ground: &Ground<Redis>) -> String {
    Redis::stream(&ground.topics, "events", 0)
}

/// One partition, so that all is in one stream.
pub fn one_stream(ground: &Ground<Redis>) -> BrokerOptions {
    ground.options().partitions(NonZeroU16::MIN)
}

pub fn broker(ground: &Ground<Redis>) -> RedisBroker {
    RedisBroker::new(&ground.url, one_stream(ground)).unwrap()
}

/// What a client that is not ours is told.
pub async fn ask<T: FromRedisValue>(connection: &mut MultiplexedConnection, words: &[&str]) -> T {
    let mut command = cmd(words[0]);
    command.arg(&words[1..]);
    command.query_async(connection).await.expect(words[0])
}

/// The same over a connection of its own.
pub async fn told<T: FromRedisValue>(url: &str, words: &[&str]) -> T {
    ask(&mut Redis::connect(url).await, words).await
}

/// The names of the group's consumers.
pub async fn consumers(ground: &Ground<Redis>) -> Vec<String> {
    let words = ["XINFO", "CONSUMERS", &stream(ground), "group"];
    let consumers: Vec<std::collections::HashMap<String, redis::Value>> =
        told(&ground.url, &words).await;
    let names = consumers.into_iter().map(|mut consumer| {
        let name = consumer.remove("name").unwrap();
        redis::from_redis_value(name).unwrap()
    });
    names.collect()
}

/// How many entries the group has read and not acknowledged.
pub async fn pending(ground: &Ground<Redis>) -> u64 {
    let summary: Vec<redis::Value> =
        told(&ground.url, &["XPENDING", &stream(ground), "group"]).await;
    redis::from_redis_value(summary[0].clone()).unwrap()
}

pub async fn subscribed(broker: &RedisBroker) -> Box<dyn Deliveries> {
    let subscription = Subscription::new("group", ["Happened"]).of_partition(0);
    broker.subscribe(subscription).await.unwrap()
}

/// The next delivery.
pub async fn next(deliveries: &mut Box<dyn Deliveries>) -> Delivery {
    let next = tokio::time::timeout(Duration::from_secs(60), deliveries.next());
    next.await.expect("a delivery").unwrap().unwrap()
}

/// What the subscription ends with, while nothing that it delivers is answered.
pub async fn end(deliveries: &mut Box<dyn Deliveries>) -> String {
    let end = async {
        let mut held = Vec::new();
        loop {
            match deliveries.next().await {
                Ok(Some(delivery)) => held.push(delivery),
                Ok(None) => return "nothing".to_owned(),
                Err(error) => return error.to_string(),
            }
        }
    };
    let end = tokio::time::timeout(Duration::from_secs(60), end);
    end.await.expect("an end")
}

pub fn sequence(delivery: &Delivery) -> i64 {
    let aggregate = delivery.message.metadata.aggregate.as_ref();
    aggregate.unwrap().sequence
}

pub async fn publish(broker: &RedisBroker, messages: &[Message]) -> Vec<Option<PublishError>> {
    let results = broker.publish(messages).await;
    results.into_iter().map(Result::err).collect()
}

pub async fn published(broker: &RedisBroker, messages: &[Message]) {
    for error in publish(broker, messages).await {
        assert!(error.is_none(), "{error:?}");
    }
}
