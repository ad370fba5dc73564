use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::domain::Message;

/// A semaphore counts in these, so that its numbers suffice.
const KIB: usize = 1 << 10;

/// What bounds the messages that were taken from the broker and are not done: their number and
/// their bytes.
pub(super) struct Places {
    messages: Arc<Semaphore>,
    kib: Arc<Semaphore>,
    most_kib: u32,
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
        let permits = usize::try_from(most_kib).unwrap_or(usize::MAX);
        Self {
            messages: Arc::new(Semaphore::new(messages.min(Semaphore::MAX_PERMITS))),
            kib: Arc::new(Semaphore::new(permits.min(Semaphore::MAX_PERMITS))),
            most_kib,
        }
    }

    /// A place for one more message, as soon as there is one. How large the message is shows when
    /// it is there, see [`room_for`](Self::room_for).
    pub(super) async fn one(&self) -> Option<OwnedSemaphorePermit> {
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

#[cfg(test)]
mod tests;
