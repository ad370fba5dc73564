//! What things are called at the server.

use std::fmt::Write;
use std::num::NonZeroU16;

use crate::broker::Topics;
use crate::broker::partition::partition_of;
use crate::broker::standing_in::derived_id;
use crate::domain::{KeyWriter, Message};

/// The longest group in a consumer's name, in bytes.
const LONGEST_NAME: usize = 100;

/// The stream of a topic.
pub(super) fn stream(topics: &Topics, topic: &str) -> String {
    topics.full_name(topic, '_')
}

/// All subjects of a topic's stream.
pub(super) fn subjects(topics: &Topics, topic: &str) -> String {
    format!("{}.>", topics.full_name(topic, '.'))
}

/// The subjects of one partition.
pub(super) fn subjects_of_partition(topics: &Topics, topic: &str, partition: u16) -> String {
    format!("{}.{partition}.>", topics.full_name(topic, '.'))
}

/// The subject of a message: namespace, topic, partition, event type, aggregate id.
pub(super) fn subject(topics: &Topics, partitions: NonZeroU16, message: &Message) -> String {
    let metadata = &message.metadata;
    let topic = topics.full_name(topics.of(&metadata.event_type), '.');
    let partition = partition_of(metadata, partitions);
    let key = match &metadata.aggregate {
        Some(aggregate) => token(&aggregate.aggregate_id),
        None => token(&metadata.message_id.to_string()),
    };
    format!(
        "{topic}.{partition}.{}.{key}",
        token_with_dots(&metadata.event_type)
    )
}

/// A consumer of one group's partition. Each begin of reading makes one of the next generation.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ConsumerName {
    pub(super) generation: u64,
    /// Tells apart two that were made at the same moment.
    pub(super) nonce: String,
}

impl ConsumerName {
    /// What all consumers of the group's partition begin with, or of the whole stream.
    pub(super) fn prefix(group: &str, partition: Option<u16>) -> String {
        match partition {
            Some(partition) => format!("{}-{partition}-", short_token(group)),
            None => format!("{}-all-", short_token(group)),
        }
    }

    /// The same for a stream of others, which services of several namespaces may read.
    pub(super) fn prefix_of_foreign(topics: &Topics, group: &str) -> String {
        format!("{}-{}-foreign-", topics.namespace(), short_token(group))
    }

    pub(super) fn parse(name: &str, prefix: &str) -> Option<Self> {
        let (generation, nonce) = name.strip_prefix(prefix)?.split_once('-')?;
        let is_nonce = !nonce.is_empty() && nonce.bytes().all(|byte| byte.is_ascii_hexdigit());
        Some(Self {
            generation: generation.parse().ok().filter(|_| is_nonce)?,
            nonce: nonce.to_owned(),
        })
    }

    pub(super) fn full(&self, prefix: &str) -> String {
        format!("{prefix}{}-{}", self.generation, self.nonce)
    }
}

/// Any text as one token of a subject, of bounded length and without two texts having the same.
fn token(text: &str) -> String {
    escape(text, false)
}

/// The same for a part of a name, of which the server allows 255 bytes.
fn short_token(text: &str) -> String {
    let token = token(text);
    match token.len() <= LONGEST_NAME {
        true => token,
        false => format!("={}", derived_id(&["group", text]).as_uuid().simple()),
    }
}

/// The same, with dots that stand between tokens kept.
fn token_with_dots(text: &str) -> String {
    let is_plain = !text.starts_with('.') && !text.ends_with('.') && !text.contains("..");
    escape(text, is_plain)
}

fn escape(text: &str, keep_dots: bool) -> String {
    let mut bounded = KeyWriter::new();
    bounded.literal(text);
    let bounded = bounded.finish().unwrap_or_default();
    let mut token = String::with_capacity(bounded.len());
    for byte in bounded.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'_' | b'-' => token.push(byte.into()),
            b'.' if keep_dots => token.push('.'),
            _ => {
                // Writing to a string does not fail.
                let _ = write!(token, "={byte:02X}");
            }
        }
    }
    match token.is_empty() {
        true => "=".to_owned(),
        false => token,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_text_is_one_token_and_no_two_have_the_same() {
        assert_eq!(token("order-17_a"), "order-17_a");
        assert_eq!(token(""), "=");
        assert_eq!(token("="), "=3D");
        assert_eq!(token("a.b *>ö"), "a=2Eb=20=2A=3E=C3=B6");
        assert_eq!(token_with_dots("order.placed"), "order.placed");
        assert_eq!(token_with_dots("order..placed."), "order=2E=2Eplaced=2E");
        let long = "é".repeat(5_000);
        assert!(token(&long).len() <= 600);
        assert_ne!(token(&long), token(&format!("{long}x")));
    }

    #[test]
    fn consumers_of_other_partitions_and_groups_are_not_taken_for_ours() {
        let prefix = ConsumerName::prefix("a-b", Some(1));
        assert_eq!(prefix, "a-b-1-");
        let name = ConsumerName {
            generation: 12,
            nonce: "0af".to_owned(),
        };
        assert_eq!(
            ConsumerName::parse(&name.full(&prefix), &prefix),
            Some(name)
        );
        let long = ConsumerName::prefix(&"ö".repeat(99), Some(65_535));
        assert!(long.len() < 120);
        assert_ne!(long, ConsumerName::prefix(&"ö".repeat(98), Some(65_535)));
        for other in [
            "a-b-1-",
            "a-b-1-x-0af",
            "a-b-1-1-",
            "a-b-1-2-3-0af",
            "a-b-11-1-0af",
        ] {
            assert_eq!(ConsumerName::parse(other, &prefix), None, "{other}");
        }
    }
}
