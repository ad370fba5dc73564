use std::fmt;

use async_trait::async_trait;
use time::OffsetDateTime;

use super::error::BrokerError;
use crate::domain::Message;

/// One message as a broker handed it over, with the means to answer.
///
/// A delivery that is dropped without an answer counts as [`nack`](Self::nack)ed: a panic or a
/// cancelled task never loses the message.
pub struct Delivery {
    /// The message.
    pub message: Message,
    /// How often it was handed over, this time included, where the broker counts; else 1 for the
    /// first time and 2 for any other.
    pub attempt: u32,
    published_at: Option<OffsetDateTime>,
    malformed: Option<String>,
    answer: Box<dyn Acknowledge>,
}

impl Delivery {
    /// A delivery that answers through `answer`.
    pub fn new(message: Message, attempt: u32, answer: impl Acknowledge + 'static) -> Self {
        Self {
            message,
            attempt,
            published_at: None,
            malformed: None,
            answer: Box::new(answer),
        }
    }

    /// A delivery of something that is no message, and why it is none.
    ///
    /// `message` stands in for it: a derived id, what could be read of the rest, and as the payload
    /// the bytes that came. The consumer keeps it as a dead letter of no consumer and acknowledges
    /// it, so that it stands in nobody's way and nothing of it is lost.
    pub fn malformed(
        message: Message,
        attempt: u32,
        reason: impl Into<String>,
        answer: impl Acknowledge + 'static,
    ) -> Self {
        Self {
            malformed: Some(reason.into()),
            ..Self::new(message, attempt, answer)
        }
    }

    /// Says when the broker took the message, by the clock of the broker or of who published it.
    ///
    /// Adapters set it where the broker keeps that time. It serves the metric
    /// `outbox_inbox_published_to_handled_seconds` alone.
    #[must_use]
    pub const fn with_published_at(mut self, published_at: OffsetDateTime) -> Self {
        self.published_at = Some(published_at);
        self
    }

    /// When the broker took the message, if it knows. The in-process broker does: it is the time
    /// of the last offer, by this machine's clock.
    pub const fn published_at(&self) -> Option<OffsetDateTime> {
        self.published_at
    }

    /// Why this is no message, if it is none; [`message`](Self::message) only stands in for it then.
    pub fn malformation(&self) -> Option<&str> {
        self.malformed.as_deref()
    }

    /// Whether the message was handed over before, so that its work may be done already.
    pub const fn is_redelivered(&self) -> bool {
        self.attempt > 1
    }

    /// Tells the broker that the message is done with.
    ///
    /// # Errors
    /// [`BrokerError`] when the broker could not be told. It will deliver the message again, and
    /// the inbox absorbs that.
    ///
    /// # Cancel safety
    /// If the call is dropped, the broker may or may not have been told.
    pub async fn ack(self) -> Result<(), BrokerError> {
        self.answer.ack().await
    }

    /// Gives the message back, to be delivered again.
    ///
    /// # Errors
    /// [`BrokerError`] when the broker could not be told; it then finds out by itself.
    ///
    /// # Cancel safety
    /// If the call is dropped, the message is given back all the same.
    pub async fn nack(self) -> Result<(), BrokerError> {
        self.answer.nack().await
    }

    /// The same delivery, answered through what `wrap` makes of the answer.
    pub(crate) fn map_answer<A: Acknowledge + 'static>(
        self,
        wrap: impl FnOnce(Box<dyn Acknowledge>) -> A,
    ) -> Self {
        Self {
            answer: Box::new(wrap(self.answer)),
            ..self
        }
    }

    /// Splits the message from the answer, for a consumer that hands the message on. Ask for a
    /// [`malformation`](Self::malformation) before.
    pub fn into_parts(self) -> (Message, Box<dyn Acknowledge>) {
        (self.message, self.answer)
    }
}

/// Shows the message without its payload.
impl fmt::Debug for Delivery {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Delivery")
            .field("message", &self.message)
            .field("attempt", &self.attempt)
            .field("malformed", &self.malformed)
            .finish_non_exhaustive()
    }
}

/// A broker adapter's side of a [`Delivery`].
///
/// Dropping it without a call must have the effect of [`nack`](Self::nack), at the latest when the
/// subscription ends.
#[async_trait]
pub trait Acknowledge: Send {
    /// The message is done with.
    ///
    /// # Errors
    /// [`BrokerError`] when the broker could not be told.
    async fn ack(self: Box<Self>) -> Result<(), BrokerError>;

    /// The message has to come again.
    ///
    /// # Errors
    /// [`BrokerError`] when the broker could not be told.
    async fn nack(self: Box<Self>) -> Result<(), BrokerError>;
}
