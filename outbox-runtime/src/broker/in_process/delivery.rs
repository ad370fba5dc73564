use async_trait::async_trait;
use time::OffsetDateTime;
use tokio::sync::{mpsc, oneshot};

use crate::broker::{Acknowledge, BrokerError, Deliveries, Delivery};
use crate::clock::Clock;
use crate::domain::Message;

/// A group acknowledged a message. Its absence (a dropped sender) is the refusal.
pub(super) struct Acknowledged;

/// A message on its way to one group.
pub(super) struct Parcel {
    message: Message,
    published_at: OffsetDateTime,
    answer: oneshot::Sender<Acknowledged>,
}

impl Parcel {
    /// A parcel, and where its publisher hears of the answer.
    pub(super) fn new(message: Message) -> (Self, oneshot::Receiver<Acknowledged>) {
        let (answer, answered) = oneshot::channel();
        let parcel = Self {
            message,
            published_at: Clock::system().now().into(),
            answer,
        };
        (parcel, answered)
    }

    /// Whether the publisher gave up waiting: it will offer the message again.
    fn is_abandoned(&self) -> bool {
        self.answer.is_closed()
    }
}

/// What waits for one member of a group.
///
/// Dropping it drops the parcels in it, which tells their publishers.
pub(super) struct Queue {
    parcels: mpsc::Receiver<Parcel>,
}

impl Queue {
    pub(super) const fn new(parcels: mpsc::Receiver<Parcel>) -> Self {
        Self { parcels }
    }
}

#[async_trait]
impl Deliveries for Queue {
    async fn next(&mut self) -> Result<Option<Delivery>, BrokerError> {
        while let Some(parcel) = self.parcels.recv().await {
            if !parcel.is_abandoned() {
                // It does not count attempts: each offer of the relay is a new message to it.
                let answer = Answer(parcel.answer);
                let delivery = Delivery::new(parcel.message, 1, answer);
                return Ok(Some(delivery.with_published_at(parcel.published_at)));
            }
        }
        Ok(None)
    }
}

struct Answer(oneshot::Sender<Acknowledged>);

#[async_trait]
impl Acknowledge for Answer {
    async fn ack(self: Box<Self>) -> Result<(), BrokerError> {
        // A publisher that gave up offers the message again, and the inbox absorbs it.
        let _ = self.0.send(Acknowledged);
        Ok(())
    }

    async fn nack(self: Box<Self>) -> Result<(), BrokerError> {
        Ok(())
    }
}
