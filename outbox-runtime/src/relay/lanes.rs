use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::hash::Hash;

use tokio::time::Instant;

use crate::backoff::Backoff;

/// What takes up room.
pub(super) trait Weighed {
    /// How much, in bytes.
    fn bytes(&self) -> usize;
}

/// How much may be taken at a time.
#[derive(Debug, Clone, Copy)]
pub(super) struct Quota {
    /// So many items.
    pub(super) items: usize,
    /// So many bytes altogether, unless the first item alone is larger.
    pub(super) bytes: usize,
    /// So many bytes in the first item.
    pub(super) first: usize,
}

/// Items in queues by key: those of one key strictly in order, different keys side by side.
///
/// A key that fails waits for its retry with all that stands behind it; every other key goes on.
/// A key is *busy* from [`take`](Self::take) until [`done`](Self::done) or [`fail`](Self::fail);
/// a busy key is never taken again.
#[derive(Debug)]
pub(super) struct Lanes<K, T> {
    lanes: HashMap<K, Lane<T>>,
    /// Keys to look at first, oldest first. An entry may be out of date; the lane's state decides.
    ready: VecDeque<K>,
    /// Keys that wait for a retry, by when it is due; entries may be out of date as well.
    waiting: BTreeMap<Ticket, K>,
    tickets: u64,
    held: usize,
    held_bytes: usize,
}

/// When a retry is due, and a number that makes it unique.
type Ticket = (Instant, u64);

#[derive(Debug)]
struct Lane<T> {
    queue: VecDeque<T>,
    state: State,
    attempts: u32,
    failing_since: Option<Instant>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Ready,
    Waiting(Ticket),
    /// So many items are out; `dropped` when they must not come back.
    Busy {
        taken: usize,
        bytes: usize,
        dropped: bool,
    },
}

/// Items of one key, in order, on their way to be worked on.
#[derive(Debug)]
pub(super) struct Taken<K, T> {
    /// The key.
    pub(super) key: K,
    /// At least one item.
    pub(super) items: VecDeque<T>,
}

impl<K, T> Default for Lanes<K, T> {
    fn default() -> Self {
        Self {
            lanes: HashMap::new(),
            ready: VecDeque::new(),
            waiting: BTreeMap::new(),
            tickets: 0,
            held: 0,
            held_bytes: 0,
        }
    }
}

impl<K: Hash + Eq + Clone, T: Weighed> Lanes<K, T> {
    /// Adds an item behind all others of its key.
    pub(super) fn push(&mut self, key: K, item: T) {
        self.held += 1;
        self.held_bytes += item.bytes();
        match self.lanes.entry(key) {
            Entry::Occupied(mut lane) => lane.get_mut().queue.push_back(item),
            Entry::Vacant(place) => {
                self.ready.push_back(place.key().clone());
                place.insert(Lane {
                    queue: VecDeque::from([item]),
                    state: State::Ready,
                    attempts: 0,
                    failing_since: None,
                });
            }
        }
    }

    /// How many items are in the queues or out to be worked on.
    pub(super) fn held(&self) -> usize {
        self.held
    }

    /// How many bytes those have.
    pub(super) fn held_bytes(&self) -> usize {
        self.held_bytes
    }

    /// The keys that failed last time.
    pub(super) fn failing(&self) -> impl Iterator<Item = &K> {
        let failing = self.lanes.iter().filter(|(_, lane)| lane.attempts > 0);
        failing.map(|(key, _)| key)
    }

    /// When the earliest retry is due.
    pub(super) fn next_retry(&self) -> Option<Instant> {
        self.waiting.keys().next().map(|&(due, _)| due)
    }

    /// Takes items of keys that are neither busy nor waiting and that `allowed` lets pass, as much
    /// as `quota` says; several of one key only in order. A key that failed last time gives a
    /// single item. An item for which there is no room ends it: smaller ones don't overtake it, or
    /// it might never find room.
    pub(super) fn take(
        &mut self,
        quota: Quota,
        now: Instant,
        allowed: impl Fn(&K) -> bool,
    ) -> Vec<Taken<K, T>> {
        self.wake_due(now);
        let mut taken = Vec::new();
        let mut left = quota.items;
        let mut room = quota.first;
        let mut rest = quota.bytes;
        let mut skipped = Vec::new();
        while left > 0
            && let Some(key) = self.ready.pop_front()
        {
            let Some(lane) = self.lanes.get_mut(&key) else {
                continue;
            };
            if lane.state != State::Ready {
                continue;
            }
            if !allowed(&key) {
                skipped.push(key);
                continue;
            }
            let most = if lane.attempts > 0 { 1 } else { left };
            let mut items = VecDeque::new();
            let mut bytes = 0;
            let mut is_full = false;
            let first = lane.queue.front().map_or(0, Weighed::bytes);
            let all = (lane.queue.len() <= most).then(|| bytes_of(&lane.queue));
            if let Some(all) = all.filter(|&all| all <= rest && first <= room) {
                // As it is: what most lanes hold fits, and needs no second queue.
                items = std::mem::take(&mut lane.queue);
                bytes = all;
                rest -= all;
                room = rest;
            }
            while items.len() < most
                && let Some(item) = lane.queue.pop_front()
            {
                let size = item.bytes();
                if size > room {
                    lane.queue.push_front(item);
                    is_full = true;
                    break;
                }
                rest = rest.saturating_sub(size);
                room = rest;
                bytes += size;
                items.push_back(item);
            }
            if items.is_empty() {
                skipped.push(key);
                break;
            }
            left -= items.len();
            lane.state = State::Busy {
                taken: items.len(),
                bytes,
                dropped: false,
            };
            taken.push(Taken { key, items });
            if is_full {
                break;
            }
        }
        for key in skipped.into_iter().rev() {
            self.ready.push_front(key);
        }
        taken
    }

    /// All that was taken of the key is finished.
    pub(super) fn done(&mut self, key: K) {
        let Entry::Occupied(mut place) = self.lanes.entry(key) else {
            return;
        };
        let lane = place.get_mut();
        let State::Busy { taken, bytes, .. } = lane.state else {
            return;
        };
        self.held -= taken;
        self.held_bytes -= bytes;
        if lane.queue.is_empty() {
            place.remove();
            return;
        }
        lane.attempts = 0;
        lane.failing_since = None;
        lane.state = State::Ready;
        self.ready.push_back(place.key().clone());
    }

    /// The first items that were taken of the key are finished, but not those in `rest`: they go
    /// back in front and are retried after the backoff. Says after how many failures in a row.
    pub(super) fn fail(&mut self, key: &K, rest: Vec<T>, now: Instant, backoff: &Backoff) -> u32 {
        let Some(lane) = self.lanes.get_mut(key) else {
            return 0;
        };
        let State::Busy {
            taken,
            bytes,
            dropped,
        } = lane.state
        else {
            return 0;
        };
        if dropped {
            self.held -= taken;
            self.held_bytes -= bytes;
            self.make_ready(key);
            return 0;
        }
        let finished = taken.saturating_sub(rest.len());
        self.held -= finished;
        self.held_bytes -= bytes.saturating_sub(bytes_of(&rest));
        if finished > 0 {
            lane.attempts = 0;
            lane.failing_since = None;
        }
        for item in rest.into_iter().rev() {
            lane.queue.push_front(item);
        }
        lane.attempts = lane.attempts.saturating_add(1);
        lane.failing_since.get_or_insert(now);
        let attempts = lane.attempts;
        self.tickets = self.tickets.wrapping_add(1);
        let ticket = (now + backoff.delay(attempts), self.tickets);
        lane.state = State::Waiting(ticket);
        self.waiting.insert(ticket, key.clone());
        attempts
    }

    /// The first items that were taken of the key are finished, but not those in `rest`: they go
    /// back in front, and the next ones may be taken at once.
    pub(super) fn go_on(&mut self, key: &K, rest: Vec<T>) {
        let Some(lane) = self.lanes.get_mut(key) else {
            return;
        };
        let State::Busy {
            taken,
            bytes,
            dropped,
        } = lane.state
        else {
            return;
        };
        self.held -= taken;
        self.held_bytes -= bytes;
        if !dropped {
            self.held += rest.len();
            self.held_bytes += bytes_of(&rest);
            for item in rest.into_iter().rev() {
                lane.queue.push_front(item);
            }
        }
        lane.attempts = 0;
        lane.failing_since = None;
        self.make_ready(key);
    }

    /// Takes a busy key out with all that stands behind what was taken of it, which is not to come
    /// back.
    pub(super) fn remove(&mut self, key: &K) -> VecDeque<T> {
        let Some(Lane { queue, state, .. }) = self.lanes.remove(key) else {
            return VecDeque::new();
        };
        let (out, out_bytes) = match state {
            State::Busy { taken, bytes, .. } => (taken, bytes),
            State::Ready | State::Waiting(_) => (0, 0),
        };
        self.held -= out + queue.len();
        self.held_bytes -= out_bytes + bytes_of(&queue);
        queue
    }

    /// Whether items of the key are in its queue or out.
    pub(super) fn contains(&self, key: &K) -> bool {
        self.lanes.contains_key(key)
    }

    /// How many bytes the items of the key have that are in its queue or out.
    pub(super) fn bytes(&self, key: &K) -> usize {
        self.lanes.get(key).map_or(0, |lane| {
            let out = match lane.state {
                State::Busy { bytes, .. } => bytes,
                State::Ready | State::Waiting(_) => 0,
            };
            out + bytes_of(&lane.queue)
        })
    }

    /// Since when every attempt of the key has failed.
    pub(super) fn failing_since(&self, key: &K) -> Option<Instant> {
        self.lanes.get(key)?.failing_since
    }

    /// Retries at once what began to fail at `since` or later: what failed for the same reason.
    pub(super) fn retry_failing_since(&mut self, since: Instant) {
        let lanes = &mut self.lanes;
        let ready = &mut self.ready;
        self.waiting
            .retain(|&ticket, key| match lanes.get_mut(key) {
                Some(lane) if lane.state == State::Waiting(ticket) => {
                    let joint = lane.failing_since.is_some_and(|first| first >= since);
                    if joint {
                        lane.state = State::Ready;
                        ready.push_back(key.clone());
                    }
                    !joint
                }
                _ => false,
            });
    }

    /// Forgets the items of all keys that `gone` names. Items that are out don't come back, and
    /// their key stays busy until they are reported.
    pub(super) fn drop_keys(&mut self, gone: impl Fn(&K) -> bool) {
        let held = &mut self.held;
        let held_bytes = &mut self.held_bytes;
        self.lanes.retain(|key, lane| {
            if !gone(key) {
                return true;
            }
            *held -= lane.queue.len();
            *held_bytes -= bytes_of(&lane.queue);
            lane.queue.clear();
            lane.attempts = 0;
            lane.failing_since = None;
            match &mut lane.state {
                State::Busy { dropped, .. } => {
                    *dropped = true;
                    true
                }
                State::Ready | State::Waiting(_) => false,
            }
        });
    }

    fn wake_due(&mut self, now: Instant) {
        while let Some(entry) = self.waiting.first_entry()
            && entry.key().0 <= now
        {
            let (ticket, key) = entry.remove_entry();
            if let Some(lane) = self.lanes.get_mut(&key)
                && lane.state == State::Waiting(ticket)
            {
                lane.state = State::Ready;
                self.ready.push_back(key);
            }
        }
    }

    fn make_ready(&mut self, key: &K) {
        let Some(lane) = self.lanes.get_mut(key) else {
            return;
        };
        if lane.queue.is_empty() {
            self.lanes.remove(key);
        } else {
            lane.state = State::Ready;
            self.ready.push_back(key.clone());
        }
    }
}

fn bytes_of<'a, T: Weighed + 'a>(items: impl IntoIterator<Item = &'a T>) -> usize {
    items.into_iter().map(Weighed::bytes).sum()
}

#[cfg(test)]
mod tests;
