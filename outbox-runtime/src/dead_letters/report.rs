use serde::Serialize;

use crate::domain::MessageId;
use crate::store::{Act, Letter, LetterId, LetterState, Side};

/// What a chunk did, or would do: one transaction's worth.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ChunkReport {
    /// What is done.
    pub act: Act,
    /// Whether it is only said and not done.
    pub dry_run: bool,
    /// Where these letters are parked.
    pub side: Side,
    /// What became of each letter, in the order of their ids.
    pub outcomes: Vec<Outcome>,
    /// The sums of the run up to here.
    pub so_far: Totals,
}

/// What became of a letter, or would.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Outcome {
    /// Which one.
    pub id: LetterId,
    /// What it is, if there is one.
    pub letter: Option<Target>,
    /// Why nothing is done to it; it is done if there is no such reason.
    pub refusal: Option<Refusal>,
}

impl Outcome {
    /// Whether it is done, or would be.
    pub fn is_done(&self) -> bool {
        self.refusal.is_none()
    }
}

/// What a letter was before the act.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Target {
    /// The message's own identity.
    pub message_id: MessageId,
    /// The event's name.
    pub event_type: String,
    /// The aggregate's type.
    pub aggregate_type: Option<String>,
    /// The aggregate's id.
    pub aggregate_id: Option<String>,
    /// The aggregate's version after the change.
    pub sequence: Option<i64>,
    /// The consumer; none on the relay's side.
    pub consumer: Option<String>,
    /// How it stood with it.
    pub state: LetterState,
    /// How many later messages of its aggregate are parked behind it: what goes on once it is out
    /// of their way, published, handled or discarded. Not counted for one that is itself waiting.
    pub behind: u64,
    /// The first of those: up to 20.
    pub first_behind: Vec<LetterId>,
}

impl Target {
    pub(super) fn new(letter: Letter, first_behind: Vec<LetterId>) -> Self {
        // One that waits may have become the first by the chunk before, but nobody says so of it in
        // a dry run.
        let is_blocking = letter.state != LetterState::Waiting;
        Self {
            message_id: letter.message_id,
            event_type: letter.event_type,
            aggregate_type: letter.aggregate_type,
            aggregate_id: letter.aggregate_id,
            sequence: letter.sequence,
            consumer: letter.consumer,
            state: letter.state,
            behind: if is_blocking { letter.behind } else { 0 },
            first_behind,
        }
    }
}

/// Why nothing is done to a letter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, thiserror::Error)]
#[serde(tag = "reason", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Refusal {
    /// There is no such letter: it never was, or it is published or handled by now.
    #[error("there is no such letter; it may have been published or handled meanwhile")]
    NotFound,
    /// Somebody discarded it before.
    #[error("it is discarded already")]
    AlreadyDiscarded,
    /// It is first in its aggregate and has not failed since it was parked there or requeued, so
    /// it is tried by itself.
    #[error("it has not failed since its turn came or it was requeued; it is tried by itself")]
    NotFailed,
    /// It was never tried and waits for others of its aggregate.
    #[error("it was not tried yet and waits behind {head}; requeue or discard that one")]
    Behind {
        /// The one that it waits for.
        head: LetterId,
    },
    /// A consumer handles it at this moment, or another operator acts on it.
    #[error("a consumer or another operator has it at this moment; try again when they are done")]
    InWork,
    /// The relay's position has not passed its row of the log. If it were discarded now and the
    /// relay crashed, it would be read and published again.
    #[error(
        "the relay's position has not passed it, so it might be read of the log again; try again \
         when earlier messages of its shard are out and no transaction stays open"
    )]
    NotSettled,
}

/// The sums of a run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Totals {
    /// Letters to which it was done, or would be.
    pub done: u64,
    /// Letters to which nothing was done, for the reason in their outcome.
    pub refused: u64,
    /// Transactions.
    pub chunks: u64,
}

impl Totals {
    pub(super) fn add(&mut self, outcomes: &[Outcome]) {
        for outcome in outcomes {
            match outcome.refusal {
                None => self.done += 1,
                Some(_) => self.refused += 1,
            }
        }
        self.chunks += 1;
    }
}

/// Whether the act can be done to a letter that is locked, unless somebody else has it.
pub(super) fn judge(act: Act, letter: &Letter, is_in_work: bool) -> Option<Refusal> {
    if letter.state == LetterState::Discarded {
        return Some(Refusal::AlreadyDiscarded);
    }
    if is_in_work {
        return Some(Refusal::InWork);
    }
    match act {
        Act::Requeue => match (letter.state, letter.waits_behind) {
            (LetterState::Waiting, Some(head)) => Some(Refusal::Behind { head }),
            (LetterState::Waiting, None) => Some(Refusal::NotFailed),
            _ => None,
        },
        Act::Discard => (!letter.is_settled).then_some(Refusal::NotSettled),
    }
}
