//! What every system carries: 300 bytes of JSON with a number in it.

use serde::{Deserialize, Serialize};

/// The length of a message as JSON, in bytes.
const LENGTH: usize = 300;
/// What its text is made of. Far below the size from which PostgreSQL compresses, so it need not be random.
const TEXT: &str = "the quick brown fox jumps over the lazy dog and ";

/// A message; its number is what tells one from another.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Message {
    /// From 0 to the number of messages, exclusive.
    pub number: u64,
    /// What fills it up to its length.
    pub text: String,
}

impl Message {
    /// The message of this number.
    pub fn new(number: u64) -> Self {
        let frame = r#"{"number":,"text":""}"#.len() + number.to_string().len();
        let text = TEXT
            .chars()
            .cycle()
            .take(LENGTH.saturating_sub(frame))
            .collect();
        Self { number, text }
    }

    /// Parts of `0..rows` of at most `size` messages.
    pub fn chunks(rows: u64, size: u64) -> impl Iterator<Item = Vec<Self>> {
        let starts = (0..rows).step_by(usize::try_from(size).unwrap_or(usize::MAX));
        starts.map(move |start| (start..rows.min(start + size)).map(Self::new).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_message_is_300_bytes_of_json() {
        for number in [0, 9, 10, 99_999, 1_000_000] {
            let json = serde_json::to_string(&Message::new(number)).unwrap();
            assert_eq!(json.len(), LENGTH, "{json}");
        }
    }

    #[test]
    fn chunks_cover_every_number_once() {
        let numbers: Vec<u64> = Message::chunks(1_001, 500)
            .flatten()
            .map(|message| message.number)
            .collect();
        assert_eq!(numbers, (0..1_001).collect::<Vec<_>>());
    }
}
