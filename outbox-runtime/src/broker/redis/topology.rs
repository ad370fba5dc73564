use std::sync::LazyLock;

use ::redis::Script;

use super::RedisBroker;
use crate::broker::Subscription;
use crate::broker::partition::{partition_of, partition_of_foreign};
use crate::domain::Metadata;

/// Appends to a stream.
pub(super) static PUBLISH: LazyLock<Script> =
    LazyLock::new(|| Script::new(include_str!("publish.lua")));
/// Makes a reader the only one of its group, and the group where it is missing.
pub(super) static TAKE_OVER: LazyLock<Script> =
    LazyLock::new(|| Script::new(include_str!("take_over.lua")));
/// Reads for the reader that took over last.
pub(super) static READ: LazyLock<Script> = LazyLock::new(|| Script::new(include_str!("read.lua")));

/// A stream that a subscription reads.
pub(super) struct StreamName {
    pub(super) key: String,
    /// Whether others own it.
    pub(super) is_foreign: bool,
}

impl RedisBroker {
    /// The stream that a message belongs to.
    pub(super) fn stream_of(&self, metadata: &Metadata) -> String {
        let topic = self.options.topics.of(&metadata.event_type);
        self.stream(topic, partition_of(metadata, self.options.partitions))
    }

    /// The streams of a subscription: of its partition, or of all if it names none.
    pub(super) fn streams_of(&self, subscription: &Subscription) -> Vec<StreamName> {
        let partitions = self.options.partitions;
        let is_read = |partition| {
            let wanted = subscription.partition;
            wanted.is_none_or(|wanted| wanted == partition)
        };
        let topics = self.options.topics.of_all(&subscription.event_types);
        let own = topics.iter().flat_map(|topic| {
            let read = (0..partitions.get()).filter(|&partition| is_read(partition));
            read.map(|partition| StreamName {
                key: self.stream(topic, partition),
                is_foreign: false,
            })
        });
        let foreign = self.options.foreign.iter().filter_map(|topic| {
            let partition = partition_of_foreign(&topic.name, partitions);
            is_read(partition).then(|| StreamName {
                key: topic.name.clone(),
                is_foreign: true,
            })
        });
        own.chain(foreign).collect()
    }

    /// In braces, so that what a cluster would do with it is known; see the type's limits.
    fn stream(&self, topic: &str, partition: u16) -> String {
        let topic = self.options.topics.full_name(topic, '.');
        format!("{{{topic}.{partition}}}")
    }
}
