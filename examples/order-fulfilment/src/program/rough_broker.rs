use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use async_trait::async_trait;
use outbox_runtime::broker::{
    BrokerError, Deliveries, InProcessBroker, PublishError, Publisher, Subscriber, Subscription,
};
use outbox_runtime::domain::Message;
use tokio::sync::watch;

/// The in-process broker on a bad day: it delivers a share of the messages twice.
pub(crate) struct RoughBroker {
    inner: InProcessBroker,
    share: f64,
    dice: Mutex<fastrand::Rng>,
    subscribed: watch::Sender<bool>,
    published: AtomicU64,
    repeated: AtomicU64,
}

impl RoughBroker {
    /// A broker that repeats this share of the messages, chosen by the seed.
    pub(crate) fn new(share: f64, seed: u64) -> Self {
        Self {
            inner: InProcessBroker::new(),
            share,
            dice: Mutex::new(fastrand::Rng::with_seed(seed)),
            subscribed: watch::Sender::new(false),
            published: AtomicU64::new(0),
            repeated: AtomicU64::new(0),
        }
    }

    /// How many messages it has confirmed, without those repeated here.
    pub(crate) fn published(&self) -> u64 {
        self.published.load(Ordering::Relaxed)
    }

    /// How many messages it has repeated.
    pub(crate) fn repeated(&self) -> u64 {
        self.repeated.load(Ordering::Relaxed)
    }

    fn is_to_be_repeated(&self) -> bool {
        let mut dice = self.dice.lock().unwrap_or_else(PoisonError::into_inner);
        dice.f64() < self.share
    }

    /// The in-process broker takes a message that nobody asked for and forgets it, as a topic
    /// without queues does. `App` knows that and relays after its consumers have subscribed; here
    /// relay and consumers are two apps, so that one of them can be killed.
    async fn wait_for_subscriber(&self) {
        let mut subscribed = self.subscribed.subscribe();
        // It can't fail: the sender is this broker's.
        let _ = subscribed.wait_for(|subscribed| *subscribed).await;
    }
}

#[async_trait]
impl Publisher for RoughBroker {
    async fn publish(&self, messages: &[Message]) -> Vec<Result<(), PublishError>> {
        self.wait_for_subscriber().await;
        // A copy stands right behind its original, so the order within each key stays as it was.
        let mut sent = Vec::with_capacity(messages.len());
        let mut is_copy = Vec::with_capacity(messages.len());
        for message in messages {
            sent.push(message.clone());
            is_copy.push(false);
            if self.is_to_be_repeated() {
                sent.push(message.clone());
                is_copy.push(true);
            }
        }
        let results = self.inner.publish(&sent).await;

        // The relay asks for its own messages; what became of a copy does not concern it.
        let mut own = Vec::with_capacity(messages.len());
        for (result, is_copy) in results.into_iter().zip(is_copy) {
            let counter = if is_copy {
                &self.repeated
            } else {
                &self.published
            };
            if result.is_ok() {
                counter.fetch_add(1, Ordering::Relaxed);
            }
            if !is_copy {
                own.push(result);
            }
        }
        own
    }
}

#[async_trait]
impl Subscriber for RoughBroker {
    async fn subscribe(
        &self,
        subscription: Subscription,
    ) -> Result<Box<dyn Deliveries>, BrokerError> {
        let deliveries = self.inner.subscribe(subscription).await?;
        self.subscribed.send_replace(true);
        Ok(deliveries)
    }
}
