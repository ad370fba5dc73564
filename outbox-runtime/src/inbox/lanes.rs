use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use time::OffsetDateTime;

use super::places::Place;
use crate::broker::{Acknowledge, BrokerError, Delivery};
use crate::domain::{Message, MessageId};

/// What a lane is kept by: the message's ordering key.
type Key = (String, String);

/// A message that was taken from the broker and waits for its answer.
pub(super) struct Job {
    pub(super) message: Message,
    /// When the message was published, if the broker knows.
    pub(super) published_at: Option<OffsetDateTime>,
    /// Why it is no message, if it is none.
    pub(super) malformed: Option<String>,
    /// How the broker hears that it is done.
    pub(super) answers: Vec<Answer>,
}

/// How the broker hears of one delivery.
///
/// It keeps the delivery's place among those that may be taken, so that a broker that delivers a
/// slow message again and again fills no memory.
pub(super) struct Answer {
    acknowledge: Box<dyn Acknowledge>,
    _place: Place,
}

impl Answer {
    /// Says that the message is done, and frees the place.
    pub(super) async fn ack(self) -> Result<(), BrokerError> {
        self.acknowledge.ack().await
    }
}

/// First in, first out for the messages of one ordering key, and side by side for different keys.
///
/// A second delivery of a message that is here already (the broker lost patience, or an earlier
/// answer was lost) joins the first instead of waiting behind it: it would find the work done.
#[derive(Default)]
pub(super) struct Lanes {
    open: Mutex<HashMap<Key, Lane>>,
}

struct Lane {
    current: MessageId,
    /// How the broker hears of deliveries that joined the current job.
    joined: Vec<Answer>,
    waiting: VecDeque<Job>,
}

/// What became of a delivery.
pub(super) enum Taken {
    /// Its lane was free: the caller works on the job and then on those that follow.
    First(Job, OpenLane),
    /// It waits behind another message of its lane.
    Waiting,
    /// It joined another delivery of the same message.
    Joined(Message),
}

impl Lanes {
    pub(super) fn take(self: &Arc<Self>, delivery: Delivery, place: Place) -> Taken {
        let published_at = delivery.published_at();
        let malformed = delivery.malformation().map(ToOwned::to_owned);
        let (message, acknowledge) = delivery.into_parts();
        let answer = Answer {
            acknowledge,
            _place: place,
        };
        let key = message.metadata.ordering_key();
        let id = message.metadata.message_id;
        let mut open = self.lock();
        if let Some(answers) = open.get_mut(&key).and_then(|lane| lane.answers_of(id)) {
            answers.push(answer);
            return Taken::Joined(message);
        }
        let job = Job {
            message,
            published_at,
            malformed,
            answers: vec![answer],
        };
        if let Some(lane) = open.get_mut(&key) {
            lane.waiting.push_back(job);
            return Taken::Waiting;
        }
        open.insert(key.clone(), Lane::new(id));
        Taken::First(
            job,
            OpenLane {
                lanes: Arc::clone(self),
                key: Some(key),
            },
        )
    }

    /// How many lanes have messages.
    pub(super) fn len(&self) -> usize {
        self.lock().len()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Key, Lane>> {
        // Nothing panics while the lock is held; if it did, the lanes would still be whole.
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Lane {
    fn new(current: MessageId) -> Self {
        Self {
            current,
            joined: Vec::new(),
            waiting: VecDeque::new(),
        }
    }

    /// Where a further delivery of a message that is in this lane leaves its answer.
    fn answers_of(&mut self, id: MessageId) -> Option<&mut Vec<Answer>> {
        if self.current == id {
            return Some(&mut self.joined);
        }
        self.waiting
            .iter_mut()
            .find(|job| job.message.metadata.message_id == id)
            .map(|job| &mut job.answers)
    }
}

/// The right to work on a lane. Dropping it closes the lane and gives back all that waits in it.
pub(super) struct OpenLane {
    lanes: Arc<Lanes>,
    /// `None` once the lane has ended.
    key: Option<Key>,
}

impl OpenLane {
    /// Ends the current job: the answers of what joined it, and the next job if one waits.
    ///
    /// Without a next job the lane is closed, and the next delivery of its key opens a new one.
    pub(super) fn advance(&mut self) -> (Vec<Answer>, Option<Job>) {
        let mut open = self.lanes.lock();
        let Some(lane) = self.key.as_ref().and_then(|key| open.get_mut(key)) else {
            return (Vec::new(), None);
        };
        let joined = std::mem::take(&mut lane.joined);
        let next = lane.waiting.pop_front();
        if let Some(job) = &next {
            lane.current = job.message.metadata.message_id;
        } else if let Some(key) = self.key.take() {
            open.remove(&key);
        }
        (joined, next)
    }
}

impl Drop for OpenLane {
    fn drop(&mut self) {
        let closed = self
            .key
            .take()
            .and_then(|key| self.lanes.lock().remove(&key));
        // What waited is given back to the broker only after the lock is free.
        drop(closed);
    }
}

#[cfg(test)]
mod tests;
