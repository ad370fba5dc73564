use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::time::{Duration, Instant};

use outbox_runtime::MessageId;

use super::frames::Letter;

/// The ordering key of a message.
type Key = (String, String);
pub(super) type ConnectionId = u64;

/// The broker's messages: kept until they are acknowledged, whoever comes and goes.
///
/// Order within a key is kept as by a partition: while messages of a key are with a connection, the
/// later ones go to the same, and what comes back goes in front.
#[derive(Default)]
pub(super) struct Queue {
    lanes: HashMap<Key, Lane>,
    /// Keys with something to deliver that are with no connection.
    free: VecDeque<Key>,
    /// The same for keys that are with a connection. Either may name a key in vain.
    owned: HashMap<ConnectionId, VecDeque<Key>>,
    in_flight: HashMap<u64, (Key, ConnectionId, Instant)>,
    next_tag: u64,
    seen: HashSet<MessageId>,
    /// Messages that were published once more.
    pub(super) republished: u64,
    /// Deliveries after the first.
    pub(super) redelivered: u64,
}

#[derive(Default)]
struct Lane {
    owner: Option<ConnectionId>,
    waiting: BTreeMap<u64, (Letter, u32)>,
    in_flight: BTreeMap<u64, (Letter, u32)>,
}

impl Queue {
    /// Takes a message in.
    pub(super) fn push(&mut self, letter: Letter) {
        if !self.seen.insert(letter.metadata.message_id) {
            self.republished += 1;
        }
        let key = letter.metadata.ordering_key();
        let tag = self.next_tag;
        self.next_tag += 1;
        let lane = self.lanes.entry(key.clone()).or_default();
        lane.waiting.insert(tag, (letter, 0));
        if lane.waiting.len() == 1 {
            self.list(key);
        }
    }

    /// The next message for a connection: its tag and how often it was delivered.
    pub(super) fn take(&mut self, to: ConnectionId) -> Option<(u64, u32, Letter)> {
        loop {
            let own = self.owned.get_mut(&to).and_then(VecDeque::pop_front);
            let key = own.or_else(|| self.free.pop_front())?;
            let Some(lane) = self.lanes.get_mut(&key) else {
                continue;
            };
            if lane.owner.is_some_and(|owner| owner != to) {
                continue;
            }
            let Some((tag, (letter, deliveries))) = lane.waiting.pop_first() else {
                continue;
            };
            lane.owner = Some(to);
            let deliveries = deliveries + 1;
            self.redelivered += u64::from(deliveries > 1);
            lane.in_flight.insert(tag, (letter.clone(), deliveries));
            self.in_flight
                .insert(tag, (key.clone(), to, Instant::now()));
            if !lane.waiting.is_empty() {
                self.list(key);
            }
            return Some((tag, deliveries, letter));
        }
    }

    /// The message is done.
    pub(super) fn ack(&mut self, tag: u64) {
        self.end(tag, false);
    }

    /// The message comes back.
    pub(super) fn nack(&mut self, tag: u64) {
        self.end(tag, true);
    }

    /// A connection is gone: what was with it comes back.
    pub(super) fn disconnect(&mut self, connection: ConnectionId) {
        let mut tags: Vec<_> = self
            .in_flight
            .iter()
            .filter(|(_, (_, owner, _))| *owner == connection)
            .map(|(tag, _)| *tag)
            .collect();
        // The key becomes free with its last message, when all are back in their places.
        tags.sort_unstable();
        for tag in tags {
            self.nack(tag);
        }
        self.owned.remove(&connection);
    }

    /// How many messages are with a connection.
    pub(super) fn with(&self, connection: ConnectionId) -> usize {
        let owners = self.in_flight.values();
        owners.filter(|(_, owner, _)| *owner == connection).count()
    }

    /// Connections that hold a message for longer than that.
    pub(super) fn silent(&self, patience: Duration) -> HashSet<ConnectionId> {
        let held = self.in_flight.values();
        held.filter(|(_, _, since)| since.elapsed() > patience)
            .map(|(_, owner, _)| *owner)
            .collect()
    }

    fn end(&mut self, tag: u64, comes_back: bool) {
        let Some((key, _, _)) = self.in_flight.remove(&tag) else {
            return;
        };
        let Some(lane) = self.lanes.get_mut(&key) else {
            return;
        };
        if let Some(letter) = lane.in_flight.remove(&tag).filter(|_| comes_back) {
            lane.waiting.insert(tag, letter);
        }
        let is_free = lane.in_flight.is_empty();
        if is_free {
            lane.owner = None;
        }
        match lane.waiting.len() {
            0 if is_free => drop(self.lanes.remove(&key)),
            0 => {}
            // It is in no list that still counts.
            waiting if is_free || (comes_back && waiting == 1) => self.list(key),
            _ => {}
        }
    }

    fn list(&mut self, key: Key) {
        match self.lanes.get(&key).and_then(|lane| lane.owner) {
            Some(owner) => self.owned.entry(owner).or_default().push_back(key),
            None => self.free.push_back(key),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bank::{Deposited, id};
    use crate::message;

    fn letter(account: &str, cents: i64) -> Letter {
        let account_id = id(account);
        let sequence = cents;
        (&message(&Deposited { account_id, cents }, account, sequence)).into()
    }

    fn taken(queue: &mut Queue, to: ConnectionId) -> Option<(u64, i64)> {
        let (tag, _, letter) = queue.take(to)?;
        Some((tag, letter.metadata.aggregate.unwrap().sequence))
    }

    #[test]
    fn a_key_stays_with_a_connection_until_all_of_it_is_done() {
        let mut queue = Queue::default();
        for sequence in 1..=3 {
            queue.push(letter("a", sequence));
        }
        let (first, one) = taken(&mut queue, 1).unwrap();
        assert_eq!((one, taken(&mut queue, 2)), (1, None));
        let (second, two) = taken(&mut queue, 1).unwrap();
        assert_eq!(two, 2);
        queue.ack(first);
        assert_eq!(taken(&mut queue, 2), None);
        queue.ack(second);
        assert_eq!(taken(&mut queue, 2).map(|(_, three)| three), Some(3));
    }

    #[test]
    fn what_comes_back_goes_in_front() {
        let mut queue = Queue::default();
        for sequence in 1..=3 {
            queue.push(letter("a", sequence));
        }
        taken(&mut queue, 1).unwrap();
        taken(&mut queue, 1).unwrap();
        queue.disconnect(1);
        let order: Vec<_> = std::iter::from_fn(|| taken(&mut queue, 2))
            .map(|(_, sequence)| sequence)
            .collect();
        assert_eq!(order, [1, 2, 3]);
        assert_eq!((queue.redelivered, queue.with(2)), (2, 3));
    }
}
