use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

use crate::domain::Message;

/// A semaphore counts in these, so that its numbers suffice.
const KIB: usize = 1 << 10;

/// How many places are waited for at once at most, and how long.
const MOST_AT_ONCE: usize = 64;
const REFILL_WAIT: Duration = Duration::from_millis(4);
/// From how many places on a wait for many was worth it, and after how many it is tried again.
const WORTH_IT: u32 = 4;
const TRY_AGAIN: u32 = 16;

/// What bounds the messages that were taken from the broker and are not done: their number and
/// their bytes.
pub(super) struct Places {
    messages: Arc<Semaphore>,
    kib: Arc<Semaphore>,
    most_kib: u32,
    refill: Refill,
}

/// How places are waited for when all are taken: for many at a time, so that not each message that is
/// done wakes who takes messages from the broker.
struct Refill {
    places: u32,
    /// How many places were free at once since they ran out last.
    gained: AtomicU32,
    times: AtomicU32,
}

/// A message's place among them, which is free again when this is dropped.
pub(super) struct Place {
    pub(super) _message: OwnedSemaphorePermit,
    pub(super) _kib: OwnedSemaphorePermit,
}

impl Places {
    /// Room for so many messages and bytes.
    pub(super) fn new(messages: usize, bytes: usize) -> Self {
        let most_kib = u32::try_from(bytes.div_ceil(KIB))
            .unwrap_or(u32::MAX)
            .max(1);
        let refill = (messages / 8).min(MOST_AT_ONCE);
        let permits = usize::try_from(most_kib).unwrap_or(usize::MAX);
        Self {
            messages: Arc::new(Semaphore::new(messages.min(Semaphore::MAX_PERMITS))),
            kib: Arc::new(Semaphore::new(permits.min(Semaphore::MAX_PERMITS))),
            most_kib,
            refill: Refill {
                places: u32::try_from(refill).unwrap_or_default(),
                gained: AtomicU32::new(0),
                times: AtomicU32::new(0),
            },
        }
    }

    /// A place for one more message, as soon as there is one. How large the message is shows when
    /// it is there, see [`room_for`](Self::room_for).
    pub(super) async fn one(&self) -> Option<OwnedSemaphorePermit> {
        if let Ok(place) = Arc::clone(&self.messages).try_acquire_owned() {
            self.refill.gained.fetch_add(1, Ordering::Relaxed);
            return Some(place);
        }
        if let Some(places) = self.refill.now() {
            let many = Arc::clone(&self.messages).acquire_many_owned(places);
            if let Ok(many) = timeout(REFILL_WAIT, many).await {
                // The rest goes back, and is taken from there.
                return many.ok()?.split(1);
            }
        }
        // The semaphores are never closed.
        Arc::clone(&self.messages).acquire_owned().await.ok()
    }

    /// Room for the message's bytes, as soon as there is any. One that is larger than all the room
    /// waits until it is alone.
    pub(super) async fn room_for(
        &self,
        place: OwnedSemaphorePermit,
        message: &Message,
    ) -> Option<Place> {
        let headers = message.metadata.headers.iter();
        let headers: usize = headers.map(|(name, value)| name.len() + value.len()).sum();
        let kib = message.payload.len().saturating_add(headers).div_ceil(KIB);
        let kib = u32::try_from(kib).unwrap_or(u32::MAX).min(self.most_kib);
        let kib = Arc::clone(&self.kib).acquire_many_owned(kib).await.ok()?;
        Some(Place {
            _message: place,
            _kib: kib,
        })
    }
}

impl Refill {
    /// How many places to wait for, if that is worth it. Where places come free one by one, as all
    /// others are taken by a lane that is stuck, it is not, and is tried only now and then.
    fn now(&self) -> Option<u32> {
        let gained = self.gained.swap(0, Ordering::Relaxed);
        let times = self.times.fetch_add(1, Ordering::Relaxed);
        let is_worth_it = gained >= WORTH_IT || times.is_multiple_of(TRY_AGAIN);
        (self.places > 1 && is_worth_it).then_some(self.places)
    }
}

#[cfg(test)]
mod tests;
