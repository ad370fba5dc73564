use std::collections::{BTreeMap, HashMap};
use std::future::Future;
use std::time::Duration;

use sqlx::Database;
use time::OffsetDateTime;
use uuid::Uuid;

use super::letter::{Act, FailedAttempt, Letter, LetterContent, LetterId, OperatorNote, Side};
use super::{LetterState, Names};
use crate::domain::MessageId;

/// Which letters of a side to read.
#[derive(Debug, Clone)]
pub struct LetterRequest<'a> {
    /// The side.
    pub side: Side,
    /// Those behind this number.
    pub after: i64,
    /// Those up to this number.
    pub up_to: i64,
    /// So many at most.
    pub limit: i64,
    /// Only these.
    pub ids: Option<&'a [i64]>,
    /// What must hold for them.
    pub criteria: &'a Criteria,
}

/// What must hold for a letter; what is not set holds for all.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Criteria {
    /// The bits of the states.
    pub states: i32,
    /// The event's name.
    pub event_type: Option<String>,
    /// The aggregate's type.
    pub aggregate_type: Option<String>,
    /// The aggregate's id.
    pub aggregate_id: Option<String>,
    /// The consumer; no letter of the relay has one.
    pub consumer: Option<String>,
    /// The correlation id.
    pub correlation_id: Option<String>,
    /// The message's id.
    pub message_id: Option<MessageId>,
    /// The least age.
    pub older_than: Option<Duration>,
    /// The greatest age.
    pub newer_than: Option<Duration>,
    /// What the last cause holds.
    pub cause: Option<String>,
}

/// Who does something to letters, and why.
#[derive(Debug, Clone, Copy)]
pub struct NoteRow<'a> {
    /// The call.
    pub run: Uuid,
    /// Who.
    pub operator: &'a str,
    /// Why.
    pub reason: &'a str,
}

impl LetterRequest<'_> {
    /// Whether parked letters are asked for.
    pub(super) fn wants_parked(&self) -> bool {
        self.criteria.states & !LetterState::Discarded.bit() != 0
    }

    /// Whether discarded letters are asked for.
    pub(super) fn wants_discarded(&self) -> bool {
        self.criteria.states & LetterState::Discarded.bit() != 0
    }
}

/// What operators ask of a database about dead letters.
///
/// Those methods that lock and change belong to one transaction of the caller's: `lock_letters`,
/// then `letters` and `place_letters` for the same ids, then the act for those that may be acted
/// on.
pub trait DeadLetterStore: Database {
    /// The SQL with the names of one outbox filled in.
    type DeadLetterQueries: Send + Sync + 'static;

    /// Fills in the names.
    #[doc(hidden)]
    fn dead_letter_queries(names: &Names) -> Self::DeadLetterQueries;

    /// Letters in the order of their numbers, without their place among others.
    #[doc(hidden)]
    fn letters(
        connection: &mut Self::Connection,
        queries: &Self::DeadLetterQueries,
        request: &LetterRequest<'_>,
    ) -> impl Future<Output = Result<Vec<Letter>, sqlx::Error>> + Send;

    /// Says of each letter of a side what it waits behind, how many wait behind it, and whether it
    /// is settled.
    #[doc(hidden)]
    fn place_letters(
        connection: &mut Self::Connection,
        queries: &Self::DeadLetterQueries,
        side: Side,
        letters: &mut [Letter],
    ) -> impl Future<Output = Result<(), sqlx::Error>> + Send;

    /// How many there are.
    #[doc(hidden)]
    fn count_letters(
        connection: &mut Self::Connection,
        queries: &Self::DeadLetterQueries,
        request: &LetterRequest<'_>,
    ) -> impl Future<Output = Result<i64, sqlx::Error>> + Send;

    /// What lists leave out.
    #[doc(hidden)]
    fn letter_content(
        connection: &mut Self::Connection,
        queries: &Self::DeadLetterQueries,
        id: LetterId,
    ) -> impl Future<Output = Result<Option<LetterContent>, sqlx::Error>> + Send;

    /// The attempts of a parked letter that are kept, oldest first.
    #[doc(hidden)]
    fn letter_attempts(
        connection: &mut Self::Connection,
        queries: &Self::DeadLetterQueries,
        id: LetterId,
    ) -> impl Future<Output = Result<Vec<FailedAttempt>, sqlx::Error>> + Send;

    /// The newest notes about a message.
    #[doc(hidden)]
    fn letter_notes(
        connection: &mut Self::Connection,
        queries: &Self::DeadLetterQueries,
        letter: &Letter,
        most: i64,
    ) -> impl Future<Output = Result<Vec<OperatorNote>, sqlx::Error>> + Send;

    /// Of each letter the first `most` that come later in its lane: pairs in order.
    #[doc(hidden)]
    fn later_letters(
        connection: &mut Self::Connection,
        queries: &Self::DeadLetterQueries,
        side: Side,
        ids: &[i64],
        most: i64,
    ) -> impl Future<Output = Result<Vec<(i64, i64)>, sqlx::Error>> + Send;

    /// Keeps relays and consumers from changing these letters until the transaction ends, and says
    /// which ones somebody else has at this moment.
    #[doc(hidden)]
    fn lock_letters(
        connection: &mut Self::Connection,
        queries: &Self::DeadLetterQueries,
        side: Side,
        ids: &[i64],
    ) -> impl Future<Output = Result<Vec<i64>, sqlx::Error>> + Send;

    /// Does it to parked letters, writes the notes, and says to how many.
    #[doc(hidden)]
    fn act_on_letters(
        connection: &mut Self::Connection,
        queries: &Self::DeadLetterQueries,
        act: Act,
        side: Side,
        ids: &[i64],
        note: NoteRow<'_>,
    ) -> impl Future<Output = Result<u64, sqlx::Error>> + Send;
}

/// The columns of a letter as the databases give them.
pub(super) struct LetterColumns {
    pub(super) number: i64,
    pub(super) consumer: Option<String>,
    pub(super) state: i32,
    pub(super) attempts: i32,
    pub(super) parked_at: OffsetDateTime,
    pub(super) failing_since: Option<OffsetDateTime>,
    pub(super) next_attempt_at: Option<OffsetDateTime>,
    pub(super) discarded_at: Option<OffsetDateTime>,
    pub(super) last_cause: Option<String>,
    pub(super) message_id: Uuid,
    pub(super) event_type: String,
    pub(super) schema_version: i64,
    pub(super) aggregate_type: Option<String>,
    pub(super) aggregate_id: Option<String>,
    pub(super) sequence: Option<i64>,
    pub(super) correlation_id: Option<String>,
    pub(super) producer: Option<String>,
    pub(super) occurred_at: Option<OffsetDateTime>,
    pub(super) occurred_nanos: Option<i32>,
    pub(super) payload_bytes: i64,
}

impl LetterColumns {
    pub(super) fn into_letter(self, side: Side) -> Result<Letter, sqlx::Error> {
        let nanos = self
            .occurred_nanos
            .and_then(|nanos| u32::try_from(nanos).ok());
        let exact = |time: OffsetDateTime| {
            nanos
                .and_then(|nanos| time.replace_nanosecond(nanos).ok())
                .unwrap_or(time)
        };
        Ok(Letter {
            id: LetterId::new(side, self.number),
            consumer: self.consumer,
            state: LetterState::of_bit(self.state)?,
            attempts: u32::try_from(self.attempts).unwrap_or_default(),
            parked_at: self.parked_at,
            failing_since: self.failing_since,
            next_attempt_at: self.next_attempt_at,
            discarded_at: self.discarded_at,
            last_cause: self.last_cause,
            message_id: MessageId::from_uuid(self.message_id),
            event_type: self.event_type,
            schema_version: self.schema_version,
            aggregate_type: self.aggregate_type,
            aggregate_id: self.aggregate_id,
            sequence: self.sequence,
            correlation_id: self.correlation_id,
            producer: self.producer,
            occurred_at: self.occurred_at.map(exact),
            payload_bytes: self.payload_bytes.unsigned_abs(),
            waits_behind: None,
            behind: 0,
            is_settled: false,
        })
    }
}

/// Adds the discarded ones to the parked ones, of which they were read after: who is among both
/// was discarded in between.
pub(super) fn merge(parked: Vec<Letter>, discarded: Vec<Letter>, limit: i64) -> Vec<Letter> {
    let mut letters: BTreeMap<_, _> = parked.into_iter().map(|one| (one.id, one)).collect();
    letters.extend(discarded.into_iter().map(|one| (one.id, one)));
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    letters.into_values().take(limit).collect()
}

/// A letter's number, what it waits behind, how many wait behind it, and whether it is settled.
pub(super) type Place = (i64, Option<i64>, i64, bool);

pub(super) fn put_in_place(side: Side, letters: &mut [Letter], places: Vec<Place>) {
    let places: HashMap<_, _> = places.into_iter().map(|place| (place.0, place)).collect();
    for letter in letters {
        if let Some(&(_, head, behind, is_settled)) = places.get(&letter.id.number()) {
            letter.waits_behind = head.map(|number| LetterId::new(side, number));
            letter.behind = behind.unsigned_abs();
            letter.is_settled = is_settled;
        }
    }
}

pub(super) fn numbers_of(letters: &[Letter]) -> Vec<i64> {
    letters.iter().map(|letter| letter.id.number()).collect()
}

/// The columns of a note as the databases give them.
pub(super) type NoteColumns<T> = (Uuid, String, i64, String, String, T);

pub(super) fn into_note(
    side: Side,
    (run, act, number, operator, reason, _): NoteColumns<()>,
    noted_at: OffsetDateTime,
) -> Result<OperatorNote, sqlx::Error> {
    Ok(OperatorNote {
        run,
        act: Act::of(&act)?,
        letter: LetterId::new(side, number),
        operator,
        reason,
        noted_at,
    })
}
