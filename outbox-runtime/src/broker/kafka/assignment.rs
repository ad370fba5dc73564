//! The partitions that a member has: what of them waits to be handled, is in work and is finished.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use super::contiguous::Contiguous;
use crate::broker::BrokerError;
use crate::broker::cloud_events::Decoded;

/// One partition of a topic.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Place {
    pub(super) topic: Arc<str>,
    pub(super) partition: i32,
}

/// Which message of which stay in a partition: after the partition went, or went back, all that was
/// taken before belongs to an epoch that is over.
#[derive(Debug, Clone)]
pub(super) struct Ticket {
    pub(super) place: Place,
    pub(super) offset: i64,
    epoch: u64,
    pub(super) attempt: u32,
}

/// A message that waits for [`Assignment::next`].
pub(super) struct Waiting {
    pub(super) ticket: Ticket,
    pub(super) decoded: Decoded,
}

/// What the member's thread, the subscription and the answers of its deliveries share.
#[derive(Default)]
pub(super) struct Assignment {
    state: Mutex<State>,
    /// Something can be taken.
    arrived: Notify,
    /// Something was answered, or it ended.
    answered: Notify,
}

#[derive(Default)]
struct State {
    partitions: HashMap<Place, Partition>,
    buffer: VecDeque<Waiting>,
    last_epoch: u64,
    /// Whether the group has said what is this member's since it was asked last.
    is_settled: bool,
    end: Option<End>,
    /// Why nothing comes, while no broker answers.
    trouble: Option<String>,
}

/// Why nothing more is delivered.
enum End {
    /// To be told once.
    Failed(Option<BrokerError>),
    Closed,
}

#[derive(Default)]
struct Partition {
    epoch: u64,
    work: Contiguous,
    /// What is before it was handed out before.
    seen: Option<i64>,
    /// Whether a message was given back and the client has to go back to it.
    is_given_back: bool,
    /// The position that the broker was told last.
    told: Option<i64>,
}

/// For the subscription.
impl Assignment {
    /// The next message; `None` once there will be none.
    ///
    /// # Cancel safety
    /// A dropped call takes nothing.
    pub(super) async fn next(&self) -> Result<Option<Waiting>, BrokerError> {
        loop {
            let arrived = self.arrived.notified();
            {
                let mut state = self.lock();
                match &mut state.end {
                    Some(End::Failed(error)) => return error.take().map_or(Ok(None), Err),
                    Some(End::Closed) => return Ok(None),
                    None => {}
                }
                if let Some(waiting) = state.buffer.pop_front() {
                    return Ok(Some(waiting));
                }
            }
            arrived.await;
        }
    }

    /// Finishes a message. Whether it still counts.
    pub(super) fn finish(&self, ticket: &Ticket) -> bool {
        let mut state = self.lock();
        let partition = state.partition(ticket);
        let is_finished = partition.is_some_and(|partition| partition.work.finish(ticket.offset));
        drop(state);
        self.answered.notify_one();
        is_finished
    }

    /// Gives a message back: it comes again, and before it nothing that is behind it.
    pub(super) fn give_back(&self, ticket: &Ticket) {
        let mut state = self.lock();
        let epoch = state.new_epoch();
        let Some(partition) = state.partition(ticket) else {
            return;
        };
        if !partition.work.finish(ticket.offset) {
            return;
        }
        let first = partition.work.position().unwrap_or(ticket.offset);
        partition.seen = partition.seen.max(partition.work.next());
        partition.work = Contiguous::starting_at(first.min(ticket.offset));
        partition.epoch = epoch;
        partition.is_given_back = true;
        state.forget_waiting(&ticket.place);
        drop(state);
        self.answered.notify_one();
    }

    /// Why nothing comes, while no broker answers.
    pub(super) fn trouble(&self) -> Option<String> {
        self.lock().trouble.clone()
    }

    /// Ends the member.
    pub(super) fn close(&self) {
        self.end(End::Closed);
    }
}

/// For the member's thread.
impl Assignment {
    /// Ends the subscription with an error, unless it has ended.
    pub(super) fn fail(&self, error: BrokerError) {
        self.end(End::Failed(Some(error)));
    }

    pub(super) fn set_trouble(&self, trouble: Option<String>) {
        self.lock().trouble = trouble;
    }

    pub(super) fn has_ended(&self) -> bool {
        self.lock().end.is_some()
    }

    /// Whether the member is not in the middle of joining, as far as is known.
    pub(super) fn is_settled(&self) -> bool {
        self.lock().is_settled
    }

    pub(super) fn assign(&self, places: impl IntoIterator<Item = Place>) {
        let mut state = self.lock();
        state.is_settled = true;
        for place in places {
            let epoch = state.new_epoch();
            state.forget_waiting(&place);
            let partition = Partition {
                epoch,
                ..Partition::default()
            };
            state.partitions.insert(place, partition);
        }
    }

    /// Forgets partitions that others will read, and says how far each is finished.
    pub(super) fn revoke(&self, places: impl IntoIterator<Item = Place>) -> Vec<(Place, i64)> {
        let mut state = self.lock();
        state.is_settled = false;
        let mut positions = Vec::new();
        for place in places {
            state.forget_waiting(&place);
            let partition = state.partitions.remove(&place);
            if let Some(position) = partition.and_then(|partition| partition.work.position()) {
                positions.push((place, position));
            }
        }
        positions
    }

    /// The ticket of a message that came, unless the member has no use for it now: the partition
    /// is not its own, or will be read again from an earlier one.
    pub(super) fn admit(&self, place: &Place, offset: i64) -> Option<Ticket> {
        let mut state = self.lock();
        let epoch = state.new_epoch();
        let partition = state.partitions.get_mut(place)?;
        if partition.is_given_back {
            return None;
        }
        let is_restarted = partition.work.is_behind(offset);
        if is_restarted {
            // The topic was made anew.
            *partition = Partition {
                epoch,
                ..Partition::default()
            };
        }
        let ticket = Ticket {
            place: place.clone(),
            offset,
            epoch: partition.epoch,
            attempt: 1 + u32::from(partition.seen.is_some_and(|seen| offset < seen)),
        };
        if is_restarted {
            state.forget_waiting(place);
        }
        Some(ticket)
    }

    /// Hands a message over, or passes it if nobody wants it.
    pub(super) fn hand_over(&self, ticket: Ticket, decoded: Option<Decoded>) {
        let mut state = self.lock();
        let Some(partition) = state.partition(&ticket) else {
            return;
        };
        match decoded {
            None => partition.work.pass(ticket.offset),
            Some(decoded) => {
                partition.work.take(ticket.offset);
                state.buffer.push_back(Waiting { ticket, decoded });
                drop(state);
                self.arrived.notify_one();
            }
        }
    }

    /// The partitions that have to go back, and where to.
    pub(super) fn given_back(&self) -> Vec<(Place, i64)> {
        let state = self.lock();
        let given_back = state.partitions.iter().filter(|(_, it)| it.is_given_back);
        given_back
            .filter_map(|(place, it)| Some((place.clone(), it.work.position()?)))
            .collect()
    }

    /// The client went back.
    pub(super) fn went_back(&self, place: &Place) {
        if let Some(partition) = self.lock().partitions.get_mut(place) {
            partition.is_given_back = false;
        }
    }

    /// How far each partition is finished, where the broker was told something else.
    pub(super) fn to_tell(&self) -> Vec<(Place, i64)> {
        let mut state = self.lock();
        let mut positions = Vec::new();
        for (place, partition) in &mut state.partitions {
            if let Some(position) = partition.news() {
                partition.told = Some(position);
                positions.push((place.clone(), position));
            }
        }
        positions
    }

    /// Whether there is something to tell.
    pub(super) fn has_news(&self) -> bool {
        let state = self.lock();
        let mut partitions = state.partitions.values();
        partitions.any(|partition| partition.news().is_some())
    }

    /// The broker could not be told.
    pub(super) fn not_told(&self, places: impl IntoIterator<Item = Place>) {
        let mut state = self.lock();
        for place in places {
            if let Some(partition) = state.partitions.get_mut(&place) {
                partition.told = None;
            }
        }
    }

    /// How many messages wait or are in work.
    pub(super) fn unfinished(&self) -> usize {
        let state = self.lock();
        let partitions = state.partitions.values();
        partitions.map(|partition| partition.work.len()).sum()
    }

    /// Waits until something is answered, or it ends.
    ///
    /// # Cancel safety
    /// A dropped call misses nothing.
    pub(super) async fn answered(&self) {
        self.answered.notified().await;
    }

    fn end(&self, end: End) {
        let mut state = self.lock();
        if !matches!(state.end, Some(End::Closed)) {
            state.end = Some(end);
        }
        state.buffer.clear();
        drop(state);
        self.arrived.notify_one();
        self.answered.notify_one();
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Nothing panics while the lock is held; if it did, the state would still be whole.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Partition {
    /// How far it is finished, if the broker was told something else.
    fn news(&self) -> Option<i64> {
        let position = self.work.position();
        position.filter(|_| position != self.told)
    }
}

impl State {
    fn new_epoch(&mut self) -> u64 {
        self.last_epoch += 1;
        self.last_epoch
    }

    /// The ticket's partition, unless its epoch is over.
    fn partition(&mut self, ticket: &Ticket) -> Option<&mut Partition> {
        let partition = self.partitions.get_mut(&ticket.place);
        partition.filter(|partition| partition.epoch == ticket.epoch)
    }

    fn forget_waiting(&mut self, place: &Place) {
        self.buffer.retain(|waiting| waiting.ticket.place != *place);
    }
}

#[cfg(test)]
mod tests;
