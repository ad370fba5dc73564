//! A broker inside the process: nothing to install, and nothing lost when the process dies.

mod delivery;
mod group;
mod publish;

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use tokio::sync::mpsc;

use self::delivery::{Parcel, Queue};
use self::group::Group;
use super::{BrokerError, Deliveries, PublishError, Publisher, Subscriber, Subscription};
use crate::domain::Message;

const DEFAULT_CAPACITY: usize = 256;
/// Below a relay's publish timeout, so that a slow group costs its own message and not the whole call.
const DEFAULT_CONFIRM_WITHIN: Duration = Duration::from_secs(5);
const LONGEST_CONFIRM: Duration = Duration::from_secs(24 * 60 * 60);

/// A broker for services that share one process, or need none between processes yet.
///
/// It keeps messages in memory only. So that none is lost when the process dies,
/// [`publish`](Publisher::publish) confirms a message **only after every subscribed group has
/// acknowledged it**; until then the outbox keeps it, and a group that gives it back, takes longer
/// than [`confirm_within`](Self::confirm_within) or dies makes the relay offer it again.
///
/// - Groups work like the queues of a topic: each group receives every message of the types it
///   asked for, one member of the group each. A message that no group asked for is confirmed at
///   once, and a group that comes later receives only later messages. `App` therefore subscribes
///   its consumers before it starts its relay.
/// - A group stays known when its last member leaves: what it asked for is refused as transient
///   until a member comes back, so a consumer that restarts misses nothing.
/// - Queues are bounded: a publisher waits for a slow consumer.
/// - Messages of one ordering key are delivered one after another, each after the former was
///   acknowledged by every group.
///
/// ```
/// use outbox_runtime::broker::{InProcessBroker, Subscriber, Subscription};
///
/// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
/// let broker = InProcessBroker::new();
/// let deliveries = broker
///     .subscribe(Subscription::new("inventory", ["OrderPaid"]))
///     .await;
/// assert!(deliveries.is_ok());
/// # });
/// ```
#[derive(Clone)]
pub struct InProcessBroker {
    groups: Arc<Mutex<Vec<Group>>>,
    capacity: usize,
    confirm_within: Duration,
}

impl InProcessBroker {
    /// A broker without groups.
    pub fn new() -> Self {
        Self {
            groups: Arc::new(Mutex::new(Vec::new())),
            capacity: DEFAULT_CAPACITY,
            confirm_within: DEFAULT_CONFIRM_WITHIN,
        }
    }

    /// Sets how many messages may wait for one member of a group, at least 1 (256 unless told).
    #[must_use]
    pub fn capacity(mut self, messages: usize) -> Self {
        self.capacity = messages.max(1);
        self
    }

    /// Sets how long a call of [`publish`](Publisher::publish) waits for the groups (5 s unless
    /// told, at most a day; keep it below the relay's publish timeout).
    ///
    /// What is not acknowledged by then counts as not published, and the relay offers it again; a
    /// later acknowledgement of the first delivery has no effect.
    #[must_use]
    pub fn confirm_within(mut self, limit: Duration) -> Self {
        self.confirm_within = limit.min(LONGEST_CONFIRM);
        self
    }

    /// Forgets a group that left for good, so that its messages are not waited for any more.
    ///
    /// Members that are still subscribed stop receiving.
    pub fn forget_group(&self, name: &str) {
        self.lock_groups().retain(|group| !group.is_named(name));
    }

    /// One queue per group that wants the message.
    ///
    /// # Errors
    /// The name of a group that wants it and has no member at the moment.
    fn route(&self, message: &Message) -> Result<Vec<mpsc::Sender<Parcel>>, String> {
        self.lock_groups()
            .iter_mut()
            .filter_map(|group| group.route(message).transpose())
            .collect()
    }

    fn lock_groups(&self) -> MutexGuard<'_, Vec<Group>> {
        // Nothing panics while the lock is held; if it did, the list would still be whole.
        self.groups.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Default for InProcessBroker {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for InProcessBroker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InProcessBroker")
            .field("capacity", &self.capacity)
            .field("confirm_within", &self.confirm_within)
            .finish_non_exhaustive()
    }
}

#[async_trait]
impl Publisher for InProcessBroker {
    async fn publish(&self, messages: &[Message]) -> Vec<Result<(), PublishError>> {
        publish::publish(self, messages).await
    }
}

#[async_trait]
impl Subscriber for InProcessBroker {
    async fn subscribe(
        &self,
        subscription: Subscription,
    ) -> Result<Box<dyn Deliveries>, BrokerError> {
        let (sender, receiver) = mpsc::channel(self.capacity);
        let mut groups = self.lock_groups();
        match groups
            .iter_mut()
            .find(|group| group.is_named(&subscription.group))
        {
            Some(group) => group.join(subscription.event_types, sender),
            None => groups.push(Group::new(subscription, sender)),
        }
        Ok(Box::new(Queue::new(receiver)))
    }
}

#[cfg(test)]
mod tests;
