//! A client that is not ours.

use std::time::{Duration, Instant};

use outbox_runtime::broker::Topics;
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::message::OwnedMessage;
use rdkafka::{ClientConfig, Offset, TopicPartitionList};

pub const PATIENCE: Duration = Duration::from_secs(60);

pub fn config(url: &str) -> ClientConfig {
    let mut config = ClientConfig::new();
    let servers = url.strip_prefix("kafka://").unwrap();
    config.set("bootstrap.servers", servers);
    config
}

/// The full name of the topic `events`.
pub fn events(topics: &Topics) -> String {
    format!("{}.events", topics.namespace())
}

/// So many messages of a topic from its beginning on, each partition in its order.
pub async fn read(url: &str, topic: &str, count: usize) -> Vec<OwnedMessage> {
    let (mut config, topic) = (config(url), topic.to_owned());
    config.set("group.id", "reader");
    let reading = tokio::task::spawn_blocking(move || {
        let consumer: BaseConsumer = config.create().unwrap();
        let mut all = TopicPartitionList::new();
        let metadata = consumer.fetch_metadata(Some(&topic), PATIENCE).unwrap();
        for partition in metadata.topics()[0].partitions() {
            all.add_partition_offset(&topic, partition.id(), Offset::Beginning)
                .unwrap();
        }
        consumer.assign(&all).unwrap();
        let since = Instant::now();
        let mut messages = Vec::new();
        while messages.len() < count {
            assert!(since.elapsed() < PATIENCE, "{} of {count}", messages.len());
            if let Some(Ok(message)) = consumer.poll(Duration::from_millis(100)) {
                messages.push(message.detach());
            }
        }
        messages
    });
    reading.await.unwrap()
}

/// What a group has committed, by partition, where it has committed anything.
pub async fn committed(url: &str, group: &str, topic: &str, partitions: i32) -> Vec<(i32, i64)> {
    let (mut config, topic) = (config(url), topic.to_owned());
    config.set("group.id", group);
    let asking = tokio::task::spawn_blocking(move || {
        let consumer: BaseConsumer = config.create().unwrap();
        let mut list = TopicPartitionList::new();
        list.add_partition_range(&topic, 0, partitions - 1);
        let committed = consumer.committed_offsets(list, PATIENCE).unwrap();
        let elements = committed.elements();
        elements
            .iter()
            .filter_map(|element| match element.offset() {
                Offset::Offset(offset) => Some((element.partition(), offset)),
                _ => None,
            })
            .collect()
    });
    asking.await.unwrap()
}

/// How many messages each partition has.
pub async fn ends(url: &str, topic: &str, partitions: i32) -> Vec<(i32, i64)> {
    let (config, topic) = (config(url), topic.to_owned());
    let asking = tokio::task::spawn_blocking(move || {
        let consumer: BaseConsumer = config.create().unwrap();
        (0..partitions)
            .map(|partition| {
                let (_, end) = consumer
                    .fetch_watermarks(&topic, partition, PATIENCE)
                    .unwrap();
                (partition, end)
            })
            .filter(|(_, end)| *end > 0)
            .collect()
    });
    asking.await.unwrap()
}
