use std::time::Duration;

use super::error::DeadLetterError;
use crate::domain::MessageId;
use crate::store::{Criteria, LetterState, Side};

/// Longer ages are as good as this one, and databases can count it.
const LONGEST: Duration = Duration::from_secs(1_000 * 366 * 24 * 3_600);

/// Which letters: all dead ones of both sides, unless it says otherwise.
///
/// Every condition narrows it. Texts are compared as they are, byte by byte: `%` and `_` stand for
/// themselves.
///
/// ```
/// use std::time::Duration;
/// use outbox_runtime::dead_letters::{LetterFilter, LetterState, Side};
///
/// let stuck_payments = LetterFilter::new()
///     .side(Side::Inbox)
///     .states([LetterState::Dead, LetterState::Failing])
///     .consumer("payments.charge")
///     .older_than(Duration::from_secs(3600))
///     .cause("connection refused");
/// # let _ = stuck_payments;
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use]
pub struct LetterFilter {
    pub(super) side: Option<Side>,
    pub(super) criteria: Criteria,
}

impl Default for LetterFilter {
    fn default() -> Self {
        Self::new()
    }
}

impl LetterFilter {
    /// All dead letters.
    pub fn new() -> Self {
        Self {
            side: None,
            criteria: Criteria {
                states: LetterState::Dead.bit(),
                ..Criteria::default()
            },
        }
    }

    /// Only those of one side.
    pub fn side(mut self, side: Side) -> Self {
        self.side = Some(side);
        self
    }

    /// Those in one of these states instead of dead ones.
    pub fn states(mut self, states: impl IntoIterator<Item = LetterState>) -> Self {
        self.criteria.states = states.into_iter().fold(0, |bits, state| bits | state.bit());
        self
    }

    /// All that is parked: dead, failing and waiting.
    pub fn parked(self) -> Self {
        self.states([
            LetterState::Dead,
            LetterState::Failing,
            LetterState::Waiting,
        ])
    }

    /// Only those of this event.
    pub fn event_type(mut self, name: impl Into<String>) -> Self {
        self.criteria.event_type = Some(name.into());
        self
    }

    /// Only those of aggregates of this type.
    pub fn aggregate_type(mut self, aggregate_type: impl Into<String>) -> Self {
        self.criteria.aggregate_type = Some(aggregate_type.into());
        self
    }

    /// Only those of aggregates with this id.
    pub fn aggregate_id(mut self, aggregate_id: impl Into<String>) -> Self {
        self.criteria.aggregate_id = Some(aggregate_id.into());
        self
    }

    /// Only those of this consumer; the empty name is that of events that no handler takes. The
    /// relay's letters have none.
    pub fn consumer(mut self, name: impl Into<String>) -> Self {
        self.criteria.consumer = Some(name.into());
        self
    }

    /// Only those of this business process.
    pub fn correlation_id(mut self, id: impl Into<String>) -> Self {
        self.criteria.correlation_id = Some(id.into());
        self
    }

    /// Only this message: on the relay's side, and for each consumer that could not handle it.
    pub fn message_id(mut self, id: MessageId) -> Self {
        self.criteria.message_id = Some(id);
        self
    }

    /// Only those that have been parked for at least so long, by the database's clock.
    pub fn older_than(mut self, age: Duration) -> Self {
        self.criteria.older_than = Some(age.min(LONGEST));
        self
    }

    /// Only those that have been parked for at most so long.
    pub fn newer_than(mut self, age: Duration) -> Self {
        self.criteria.newer_than = Some(age.min(LONGEST));
        self
    }

    /// Only those whose last cause holds this text, in this case.
    pub fn cause(mut self, text: impl Into<String>) -> Self {
        self.criteria.cause = Some(text.into());
        self
    }

    /// Whether letters of that side can be among them.
    pub(super) fn has(&self, side: Side) -> bool {
        self.side.is_none_or(|only| only == side)
    }

    pub(super) fn check(&self) -> Result<(), DeadLetterError> {
        let Criteria {
            event_type,
            aggregate_type,
            aggregate_id,
            consumer,
            correlation_id,
            cause,
            ..
        } = &self.criteria;
        let texts = [
            ("the event type", event_type),
            ("the aggregate type", aggregate_type),
            ("the aggregate id", aggregate_id),
            ("the consumer", consumer),
            ("the correlation id", correlation_id),
            ("the text of the cause", cause),
        ];
        for (what, text) in texts {
            if text.as_ref().is_some_and(|text| text.contains('\0')) {
                return Err(DeadLetterError::Nul { what });
            }
        }
        Ok(())
    }
}
