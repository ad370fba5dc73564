use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use time::OffsetDateTime;

use crate::domain::MessageId;

/// Where a message is parked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Side {
    /// The relay could not publish it: `outbox_parked`.
    Relay,
    /// A consumer could not handle it: `inbox_parked`.
    Inbox,
}

impl Side {
    /// As it is stored and written.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Relay => "relay",
            Self::Inbox => "inbox",
        }
    }
}

/// Which letter: its side and its number there, written as `relay:17` or `inbox:4`.
///
/// It stays the same as long as the letter is parked and after it was discarded, and is never
/// given again. Letters are listed in the order of their ids.
///
/// ```
/// use outbox_runtime::dead_letters::{LetterId, Side};
///
/// let id: LetterId = "inbox:4".parse()?;
/// assert_eq!((id.side(), id.number()), (Side::Inbox, 4));
/// assert_eq!(id.to_string(), "inbox:4");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LetterId {
    side: Side,
    number: i64,
}

impl LetterId {
    /// The letter with that number on that side.
    pub const fn new(side: Side, number: i64) -> Self {
        Self { side, number }
    }

    /// Where it is parked.
    pub const fn side(self) -> Side {
        self.side
    }

    /// The column `id` of its row there.
    pub const fn number(self) -> i64 {
        self.number
    }
}

impl fmt::Display for LetterId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.side.as_str(), self.number)
    }
}

impl fmt::Debug for LetterId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A text is no [`LetterId`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no letter's id; write the side and the number, as in relay:17 or inbox:4")]
pub struct LetterIdError(String);

impl FromStr for LetterId {
    type Err = LetterIdError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let error = || LetterIdError(text.chars().take(50).collect());
        let (side, number) = text.split_once(':').ok_or_else(error)?;
        let side = match side {
            "relay" => Side::Relay,
            "inbox" => Side::Inbox,
            _ => return Err(error()),
        };
        let number = number.parse().map_err(|_| error())?;
        Ok(Self { side, number })
    }
}

impl Serialize for LetterId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for LetterId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

/// How it stands with a letter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LetterState {
    /// Its attempts are used up, or it can't succeed: it waits for an operator.
    Dead,
    /// It failed, and is tried again by itself.
    Failing,
    /// It has not failed yet: it waits for its turn behind another of its aggregate, or was
    /// requeued and not tried since.
    Waiting,
    /// An operator gave it up; it is kept in `outbox_discarded`.
    Discarded,
}

impl LetterState {
    /// Its bit in the queries.
    pub(crate) const fn bit(self) -> i32 {
        match self {
            Self::Dead => 1,
            Self::Failing => 2,
            Self::Waiting => 4,
            Self::Discarded => 8,
        }
    }

    pub(super) fn of_bit(bit: i32) -> Result<Self, sqlx::Error> {
        [Self::Dead, Self::Failing, Self::Waiting, Self::Discarded]
            .into_iter()
            .find(|state| state.bit() == bit)
            .ok_or_else(|| sqlx::Error::Decode(format!("the state is {bit}").into()))
    }
}

/// A parked or discarded message, as a list shows it: never its payload.
///
/// What only this project's own writer always fills may be missing, and the values are as they are
/// stored: a row that a foreign writer got wrong can be a dead letter too.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Letter {
    /// Which one.
    pub id: LetterId,
    /// The consumer that could not handle it: empty for an event that no handler takes, none on
    /// the relay's side.
    pub consumer: Option<String>,
    /// How it stands with it.
    pub state: LetterState,
    /// How many attempts have failed since it was parked or last requeued.
    pub attempts: u32,
    /// When it was parked, by the database's clock. Its age counts from here.
    #[serde(with = "time::serde::rfc3339")]
    pub parked_at: OffsetDateTime,
    /// When the first of these attempts failed.
    #[serde(with = "time::serde::rfc3339::option")]
    pub failing_since: Option<OffsetDateTime>,
    /// When it is tried next, once it is the first of its aggregate.
    #[serde(with = "time::serde::rfc3339::option")]
    pub next_attempt_at: Option<OffsetDateTime>,
    /// When it was discarded.
    #[serde(with = "time::serde::rfc3339::option")]
    pub discarded_at: Option<OffsetDateTime>,
    /// Why the last attempt failed.
    pub last_cause: Option<String>,
    /// The message's own identity; nil where a foreign writer stored none that can be read.
    pub message_id: MessageId,
    /// The event's name.
    pub event_type: String,
    /// The version of the payload's schema.
    pub schema_version: i64,
    /// The aggregate's type.
    pub aggregate_type: Option<String>,
    /// The aggregate's id.
    pub aggregate_id: Option<String>,
    /// The aggregate's version after the change.
    pub sequence: Option<i64>,
    /// What ties the messages of a business process together.
    pub correlation_id: Option<String>,
    /// The service that wrote it.
    pub producer: Option<String>,
    /// When it happened; none where the stored time is none of the calendar's.
    #[serde(with = "time::serde::rfc3339::option")]
    pub occurred_at: Option<OffsetDateTime>,
    /// The payload's size.
    pub payload_bytes: u64,
    /// The letter that it waits behind, if it is not the first of its aggregate.
    pub waits_behind: Option<LetterId>,
    /// How many later messages of its aggregate are parked behind it, where it is not just one of
    /// those that wait. In the inbox 10,000 stand for that many or more.
    pub behind: u64,
    /// Whether a relay's position has passed it, so that it is not read of the log again.
    #[serde(skip)]
    pub(crate) is_settled: bool,
}

/// All that is kept of a letter.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct LetterDetails {
    /// What a list shows of it.
    #[serde(flatten)]
    pub letter: Letter,
    /// The rest of its envelope, byte for byte as it was written.
    #[serde(flatten)]
    pub content: LetterContent,
    /// The newest failed attempts that are kept, oldest first: up to 50.
    pub failed_attempts: Vec<FailedAttempt>,
    /// The first later messages of its aggregate that are parked behind it: up to 100.
    pub first_behind: Vec<LetterId>,
    /// What operators did to this message here, newest first: up to 100.
    pub notes: Vec<OperatorNote>,
}

/// The part of a letter that lists leave out. Its `Debug` shows the payload's size only.
#[derive(Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct LetterContent {
    /// The message that led to it.
    pub causation_id: Option<String>,
    /// The W3C trace context's `traceparent`.
    pub traceparent: Option<String>,
    /// The W3C trace context's `tracestate`.
    pub tracestate: Option<String>,
    /// The headers as JSON text.
    pub headers: Option<String>,
    /// The event's business key.
    pub business_key: Option<String>,
    /// The consumer's key for the message, if it could be computed.
    pub idempotency_key: Option<String>,
    /// The payload as JSON text.
    pub payload: String,
    /// The attempts of a discarded letter.
    #[serde(skip)]
    pub(crate) causes: Option<String>,
}

impl fmt::Debug for LetterContent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LetterContent")
            .field("causation_id", &self.causation_id)
            .field("traceparent", &self.traceparent)
            .field("tracestate", &self.tracestate)
            .field("headers", &self.headers)
            .field("business_key", &self.business_key)
            .field("idempotency_key", &self.idempotency_key)
            .field("payload_bytes", &self.payload.len())
            .finish()
    }
}

/// A failed attempt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct FailedAttempt {
    /// Which one, from 1; a requeue begins anew.
    pub attempt: u32,
    /// When, by the database's clock.
    #[serde(with = "time::serde::rfc3339")]
    pub failed_at: OffsetDateTime,
    /// Why: bounded, on one line, without the payload.
    pub cause: String,
}

/// What an operator does to a letter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Act {
    /// Has it tried again now, with its attempts counted from the start.
    Requeue,
    /// Gives it up: it is moved to `outbox_discarded`.
    Discard,
}

impl Act {
    /// As it is stored and written.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Requeue => "requeue",
            Self::Discard => "discard",
        }
    }

    pub(super) fn of(text: &str) -> Result<Self, sqlx::Error> {
        match text {
            "requeue" => Ok(Self::Requeue),
            "discard" => Ok(Self::Discard),
            other => Err(sqlx::Error::Decode(format!("the act is {other}").into())),
        }
    }
}

/// Who did what to a letter, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct OperatorNote {
    /// The call: all letters of one have the same.
    pub run: uuid::Uuid,
    /// What was done.
    pub act: Act,
    /// To which letter: the same message has another id when it is parked anew.
    pub letter: LetterId,
    /// Who.
    pub operator: String,
    /// Why.
    pub reason: String,
    /// When, by the database's clock.
    #[serde(with = "time::serde::rfc3339")]
    pub noted_at: OffsetDateTime,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_written_and_read() {
        for text in ["relay:1", "inbox:9223372036854775807"] {
            let id: LetterId = text.parse().unwrap();
            assert_eq!(id.to_string(), text);
            assert_eq!(serde_json::to_string(&id).unwrap(), format!("{text:?}"));
            assert_eq!(
                serde_json::from_str::<LetterId>(&format!("{text:?}")).unwrap(),
                id
            );
        }
        for bad in [
            "",
            "7",
            "relay",
            "relay:",
            "outbox:7",
            "relay:x",
            "relay:7:8",
        ] {
            assert!(bad.parse::<LetterId>().is_err(), "{bad}");
        }
    }

    #[test]
    fn a_debug_text_shows_no_payload() {
        let content = LetterContent {
            causation_id: None,
            traceparent: None,
            tracestate: None,
            headers: None,
            business_key: None,
            idempotency_key: None,
            payload: "{\"card\":\"4711\"}".to_owned(),
            causes: None,
        };
        let text = format!("{content:?}");
        assert!(
            !text.contains("4711") && text.contains("payload_bytes: 15"),
            "{text}"
        );
    }
}
