use std::num::NonZeroU16;

use crate::domain::{Metadata, fnv1a};

/// The part of a topic that a message belongs to: all of an aggregate's are in one.
///
/// The 64-bit [FNV-1a](https://datatracker.ietf.org/doc/html/draft-eastlake-fnv) of the aggregate's
/// id, or of the message's id as text where there is no aggregate, folded to 32 bits, modulo the
/// number of partitions. Kafka has a rule of its own.
pub(super) fn partition_of(metadata: &Metadata, partitions: NonZeroU16) -> u16 {
    let hash = match &metadata.aggregate {
        Some(aggregate) => fnv1a(aggregate.aggregate_id.bytes()),
        None => fnv1a(metadata.message_id.to_string().bytes()),
    };
    let folded = (hash >> 32) ^ (hash & 0xffff_ffff);
    // The remainder is below a u16, so it always fits.
    u16::try_from(folded % u64::from(partitions.get())).unwrap_or_default()
}

/// The one whose reader also reads a foreign topic, which has no partitions of ours.
pub(super) fn partition_of_foreign(topic: &str, partitions: NonZeroU16) -> u16 {
    let hash = fnv1a(topic.bytes());
    u16::try_from(((hash >> 32) ^ (hash & 0xffff_ffff)) % u64::from(partitions.get()))
        .unwrap_or_default()
}
