use std::future::Future;
use std::time::Duration;

use time::OffsetDateTime;

use super::stored_message::{ReadMessage, StoredMessage};
use super::{Error, InboxStore, LogContent};
use crate::domain::{Message, MessageId, Metadata};

/// What a parked message waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ParkedState {
    /// The next attempt.
    Failing,
    /// Those before it in its lane; it was not tried yet.
    Waiting,
    /// An operator.
    Dead,
}

impl ParkedState {
    /// As it is stored.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Failing => "failing",
            Self::Waiting => "waiting",
            Self::Dead => "dead",
        }
    }
}

/// A message to set aside for one consumer.
#[derive(Debug, Clone, Copy)]
pub struct ToSetAside<'a> {
    /// The consumer's name; empty for an event that no handler takes.
    pub consumer: &'a str,
    /// The consumer's key for the message, if it could be computed.
    pub idempotency_key: Option<&'a str>,
    /// The message.
    pub message: &'a Message,
    /// What it waits for.
    pub state: ParkedState,
    /// Whether later messages of its lane wait behind it.
    pub holds: bool,
    /// When it is tried next.
    pub wait: Duration,
    /// Why it failed; `None` for one that was not tried.
    pub cause: Option<&'a str>,
}

/// What became of a message to set aside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Parked {
    /// It is parked now.
    Now,
    /// It was parked already.
    Before,
    /// Its effect is there already, so there is nothing to set aside.
    Handled,
}

/// A parked message that may be tried: the first of its lane, or one that its lane has passed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ParkedHead {
    /// Its row.
    pub id: i64,
    /// How long until it is due, by the database's clock.
    pub wait: Duration,
}

/// A parked message that was taken out to be tried.
#[derive(Debug)]
pub struct TakenOut {
    /// Its row.
    pub id: i64,
    /// The consumer's name; empty for an event that no handler took.
    pub consumer: String,
    /// How many attempts have failed.
    pub attempts: u32,
    /// How long it has been failing.
    pub age: Duration,
    /// The message as it came.
    pub message: Message,
}

/// A further failed attempt of a parked message.
#[derive(Debug, Clone, Copy)]
pub struct FailedAgain<'a> {
    /// Its row.
    pub id: i64,
    /// How many attempts had failed before.
    pub attempts: u32,
    /// What it waits for now.
    pub state: ParkedState,
    /// Whether later messages of its lane still wait behind it.
    pub holds: bool,
    /// When it is tried next.
    pub wait: Duration,
    /// Why it failed.
    pub cause: &'a str,
}

/// What an operator should know of one consumer's parked messages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trouble {
    /// The consumer's name; empty for events that no handler takes.
    pub consumer: String,
    /// How many are dead.
    pub dead: i64,
    /// How many fail again and again.
    pub failing: i64,
    /// How many are parked in all.
    pub parked: i64,
    /// Whether no handler of the program is the consumer's.
    pub is_orphaned: bool,
    /// How many of those that nobody handles have been due for a minute.
    pub stuck: i64,
    /// The oldest that is dead or fails again and again.
    pub message_id: MessageId,
    /// Its event.
    pub event_type: String,
    /// Its version.
    pub schema_version: i64,
    /// Why it failed last.
    pub cause: Option<String>,
}

/// Sets messages aside that a consumer could not handle, and gives them back in order.
pub trait InboxParkingStore: InboxStore {
    /// Sets a message aside, unless it is handled or parked. The caller commits.
    #[doc(hidden)]
    fn set_aside(
        connection: &mut Self::Connection,
        queries: &Self::InboxQueries,
        to_set_aside: ToSetAside<'_>,
    ) -> impl Future<Output = Result<Parked, Error>> + Send;

    /// The first `most` parked messages of the consumers that may be tried, soonest first.
    #[doc(hidden)]
    fn parked_heads(
        connection: &mut Self::Connection,
        queries: &Self::InboxQueries,
        consumers: &[&str],
        most: usize,
    ) -> impl Future<Output = Result<Vec<ParkedHead>, Error>> + Send;

    /// Takes a parked message out for the transaction of `connection`, if it is due, first in its
    /// lane, and in nobody else's hands. A rollback puts it back.
    #[doc(hidden)]
    fn take_out(
        connection: &mut Self::Connection,
        queries: &Self::InboxQueries,
        id: i64,
    ) -> impl Future<Output = Result<Option<TakenOut>, Error>> + Send;

    /// Records a further failed attempt; `false` if the row was tried or removed by another. The
    /// caller commits.
    #[doc(hidden)]
    fn failed_again(
        connection: &mut Self::Connection,
        queries: &Self::InboxQueries,
        failed: FailedAgain<'_>,
    ) -> impl Future<Output = Result<bool, Error>> + Send;

    /// Those of the consumers that have dead messages, or some that failed `attempts` times; and
    /// those that are not among the `linked` and have dead messages, or some that nobody tries.
    #[doc(hidden)]
    fn trouble(
        connection: &mut Self::Connection,
        queries: &Self::InboxQueries,
        consumers: &[&str],
        linked: &[&str],
        attempts: u32,
    ) -> impl Future<Output = Result<Vec<Trouble>, Error>> + Send;
}

/// The columns of a message that need a form of their own.
pub(super) struct ParkedColumns {
    pub(super) lane: String,
    pub(super) aggregate_type: Option<String>,
    pub(super) aggregate_id: Option<String>,
    pub(super) sequence: Option<i64>,
    /// Down to the microsecond, which both databases hold without rounding.
    pub(super) occurred_at: OffsetDateTime,
    pub(super) occurred_nanos: i32,
    pub(super) headers: Option<String>,
}

impl ParkedColumns {
    pub(super) fn of(metadata: &Metadata) -> Result<Self, Error> {
        let aggregate = metadata.aggregate.as_ref();
        let headers = (!metadata.headers.is_empty())
            .then(|| serde_json::to_string(&metadata.headers))
            .transpose()
            .map_err(|error| Error::Database {
                doing: PARKING,
                source: sqlx::Error::Encode(error.into()),
            })?;
        let nanos = metadata.occurred_at.nanosecond();
        Ok(Self {
            lane: metadata.lane(),
            aggregate_type: aggregate.map(|of| of.aggregate_type.clone()),
            aggregate_id: aggregate.map(|of| of.aggregate_id.clone()),
            sequence: aggregate.map(|of| of.sequence),
            occurred_at: metadata
                .occurred_at
                .replace_nanosecond(nanos / 1_000 * 1_000)
                .unwrap_or(metadata.occurred_at),
            // Always below a thousand million.
            occurred_nanos: i32::try_from(nanos).unwrap_or_default(),
            headers,
        })
    }
}

/// A longer wait than any that makes sense, and one that no database's time overflows by.
pub(super) const LONGEST_WAIT: Duration = Duration::from_secs(10 * 365 * 24 * 60 * 60);

/// What is being done, for errors.
pub(super) const PARKING: &str = "parking a message";
pub(super) const TAKING: &str = "taking out a parked message";

/// The columns of a row that was taken out.
pub(super) struct TakenColumns {
    pub(super) consumer: String,
    pub(super) attempts: i32,
    pub(super) age: Duration,
    pub(super) schema_version: i64,
    pub(super) occurred_at: OffsetDateTime,
    pub(super) occurred_nanos: i32,
    pub(super) stored: StoredMessage,
}

impl TakenColumns {
    /// The message as it came.
    pub(super) fn into_taken(mut self, id: i64) -> Result<TakenOut, sqlx::Error> {
        let decode = |reason: String| sqlx::Error::Decode(reason.into());
        let nanos = u32::try_from(self.occurred_nanos).unwrap_or_default();
        self.stored.occurred_at = self
            .occurred_at
            .replace_nanosecond(nanos)
            .map_err(|error| sqlx::Error::Decode(error.into()))?;
        let schema_version = u32::try_from(self.schema_version)
            .map_err(|_| decode(format!("schema_version is {}", self.schema_version)))?;
        let mut message = match ReadMessage::from(self.stored).content {
            LogContent::Message(message) => *message,
            LogContent::Unreadable(unreadable) => return Err(decode(unreadable.reason)),
            LogContent::NotRead => return Err(decode("the row was not read".to_owned())),
        };
        message.metadata.schema_version = schema_version;
        Ok(TakenOut {
            id,
            consumer: self.consumer,
            attempts: u32::try_from(self.attempts).unwrap_or_default(),
            age: self.age,
            message,
        })
    }
}

/// The row's version column holds any of a message's; the log's holds fewer.
pub(super) const ANY_VERSION: i32 = 1;
