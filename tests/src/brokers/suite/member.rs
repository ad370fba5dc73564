use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use outbox_runtime::broker::{Broker, Delivery, Sharing, Subscription};
use outbox_runtime::{AggregateRef, Message, MessageId, Metadata};
use time::OffsetDateTime;
use tokio::sync::mpsc;
use tokio::task::{JoinHandle, JoinSet};
use uuid::Uuid;

/// How long anything may take.
const PATIENCE: Duration = Duration::from_secs(60);

/// A member of a group that reads all partitions, or what the broker gives it, and subscribes anew
/// when that breaks: a consumer without a database.
pub struct Member {
    deliveries: mpsc::Receiver<Delivery>,
    reading: JoinSet<()>,
}

impl Member {
    /// Joins and waits until it is subscribed.
    pub async fn join(broker: &Arc<dyn Broker>, group: &str, event_types: &[&str]) -> Self {
        let member = Self::join_later(broker, group, event_types);
        member.1.await.unwrap();
        member.0
    }

    /// The same for a member that leaves for good what breaks: where partitions are leased, it has
    /// lost its lease.
    pub async fn join_once(broker: &Arc<dyn Broker>, group: &str, event_types: &[&str]) -> Self {
        let is_steady = broker.sharing() == Sharing::ByBroker;
        let member = Self::start(broker, group, event_types, is_steady);
        member.1.await.unwrap();
        member.0
    }

    /// Joins as soon as the broker lets it. The second says when it is subscribed everywhere.
    pub fn join_later(
        broker: &Arc<dyn Broker>,
        group: &str,
        event_types: &[&str],
    ) -> (Self, JoinHandle<()>) {
        Self::start(broker, group, event_types, true)
    }

    fn start(
        broker: &Arc<dyn Broker>,
        group: &str,
        event_types: &[&str],
        is_steady: bool,
    ) -> (Self, JoinHandle<()>) {
        let subscription = Subscription::new(group, event_types.iter().copied());
        let subscriptions = match broker.sharing() {
            Sharing::Leased { partitions } => (0..partitions.get())
                .map(|partition| subscription.of_partition(partition))
                .collect(),
            _ => vec![subscription],
        };
        let (sender, deliveries) = mpsc::channel(1);
        let (subscribed, mut all) = mpsc::channel(subscriptions.len());
        let mut reading = JoinSet::new();
        let count = subscriptions.len();
        for subscription in subscriptions {
            let (broker, sender) = (Arc::clone(broker), sender.clone());
            let mut subscribed = Some(subscribed.clone());
            reading.spawn(async move {
                loop {
                    if let Ok(mut open) = broker.subscribe(subscription.clone()).await {
                        if let Some(subscribed) = subscribed.take() {
                            let _ = subscribed.send(()).await;
                        }
                        while let Ok(Some(delivery)) = open.next().await {
                            if sender.send(delivery).await.is_err() {
                                return;
                            }
                        }
                        if !is_steady {
                            return;
                        }
                    }
                    tokio::time::sleep(Duration::from_millis(50)).await;
                }
            });
        }
        drop(subscribed);
        let all = tokio::spawn(async move {
            let all = async {
                for _ in 0..count {
                    all.recv().await.expect("every partition is subscribed to");
                }
            };
            tokio::time::timeout(PATIENCE, all)
                .await
                .expect("all are subscribed to");
        });
        (
            Self {
                deliveries,
                reading,
            },
            all,
        )
    }

    /// The next delivery. Who was told that others took over waits for one in vain.
    ///
    /// # Panics
    /// After a minute.
    pub async fn next(&mut self) -> Delivery {
        let next = async {
            match self.deliveries.recv().await {
                Some(delivery) => delivery,
                None => std::future::pending().await,
            }
        };
        tokio::time::timeout(PATIENCE, next)
            .await
            .expect("a delivery within a minute")
    }

    /// The next delivery, if one comes within the time.
    pub async fn next_within(&mut self, time: Duration) -> Option<Delivery> {
        tokio::time::timeout(time, self.deliveries.recv())
            .await
            .ok()?
    }

    /// The next message, acknowledged.
    pub async fn take(&mut self) -> Message {
        let delivery = self.next().await;
        let message = delivery.message.clone();
        // If the broker was not told, the message comes again.
        let _ = delivery.ack().await;
        message
    }

    /// So many different messages in the order of their first arrival, acknowledged.
    pub async fn take_distinct(&mut self, count: usize) -> Vec<Message> {
        let mut seen = HashSet::new();
        let mut messages = Vec::new();
        while messages.len() < count {
            let message = self.take().await;
            if seen.insert(message.metadata.message_id) {
                messages.push(message);
            }
        }
        messages
    }

    /// Leaves the group, as a crash would.
    pub async fn leave(mut self) {
        self.reading.shutdown().await;
    }
}

/// An event about an aggregate.
pub fn event(event_type: &str, aggregate_id: &str, sequence: i64) -> Message {
    Message {
        metadata: Metadata {
            message_id: MessageId::from_uuid(Uuid::now_v7()),
            event_type: event_type.to_owned(),
            schema_version: 1,
            aggregate: Some(AggregateRef {
                aggregate_type: "Thing".to_owned(),
                aggregate_id: aggregate_id.to_owned(),
                sequence,
            }),
            correlation_id: format!("correlation of {aggregate_id}"),
            causation_id: None,
            producer: "suite".to_owned(),
            occurred_at: OffsetDateTime::now_utc(),
            traceparent: None,
            tracestate: None,
            headers: BTreeMap::new(),
        },
        payload: format!("{{\"sequence\":{sequence}}}"),
    }
}

/// Waits until something is so.
///
/// # Panics
/// After a minute.
pub async fn wait_until(what: &str, mut is_so: impl AsyncFnMut() -> bool) {
    let since = Instant::now();
    while !is_so().await {
        assert!(since.elapsed() < PATIENCE, "not within a minute: {what}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}
