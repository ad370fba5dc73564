//! Clients that are dropped where it hurts nobody.

use std::thread;

/// Drops a client of librdkafka in a thread of its own: its end waits for the client's threads, up
/// to a second, which would hold up whoever drops it.
pub(super) struct Disposed<T: Send + 'static>(Option<T>);

impl<T: Send + 'static> Disposed<T> {
    pub(super) const fn new(client: T) -> Self {
        Self(Some(client))
    }

    /// The client, which is there until it is dropped.
    pub(super) const fn get(&self) -> Option<&T> {
        self.0.as_ref()
    }
}

impl<T: Send + 'static> Drop for Disposed<T> {
    fn drop(&mut self) {
        let client = self.0.take();
        // Without a thread the closure is dropped here, and the client with it.
        let _ = thread::Builder::new()
            .name("kafka-disposal".to_owned())
            .spawn(move || drop(client));
    }
}
