use std::num::NonZeroU16;

use crate::domain::{Metadata, part_of};

/// The part of a topic that a message belongs to: all of an aggregate's are in one.
///
/// The 64-bit [FNV-1a](https://datatracker.ietf.org/doc/html/draft-eastlake-fnv) of the aggregate's
/// id, or of the message's id as text where there is no aggregate, folded to 32 bits, modulo the
/// number of partitions. Kafka has a rule of its own.
pub(super) fn partition_of(metadata: &Metadata, partitions: NonZeroU16) -> u16 {
    match &metadata.aggregate {
        Some(aggregate) => part_of(aggregate.aggregate_id.bytes(), partitions.get()),
        None => part_of(metadata.message_id.to_string().bytes(), partitions.get()),
    }
}

/// The one whose reader also reads a foreign topic, which has no partitions of ours.
pub(super) fn partition_of_foreign(topic: &str, partitions: NonZeroU16) -> u16 {
    part_of(topic.bytes(), partitions.get())
}
