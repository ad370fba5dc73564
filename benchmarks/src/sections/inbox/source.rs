use std::collections::BTreeMap;
use std::future::pending;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anyhow::{Result, ensure};
use async_trait::async_trait;
use outbox_runtime::broker::{
    Acknowledge, BrokerError, Deliveries, Delivery, Subscriber, Subscription,
};
use outbox_runtime::prelude::*;
use outbox_runtime::{AggregateRef, Message, MessageId};
use time::OffsetDateTime;
use tokio::sync::Notify;
use tokio::time::Instant;
use uuid::Uuid;

use super::ACCOUNT_ROWS;

/// Ids of version 7 that follow each other, as those of a real log do.
const FIRST_ID: u128 = 0x0198_0000_0000_7000_8000_0000_0000_0000;

/// The message of a number: what accounts were told in turn.
pub(crate) fn message(number: u64) -> Message {
    let accounts = ACCOUNT_ROWS.unsigned_abs();
    let (account, before) = (number % accounts, number / accounts);
    Message {
        metadata: Metadata {
            message_id: MessageId::from_uuid(Uuid::from_u128(FIRST_ID + u128::from(number))),
            event_type: "bench.deposited".to_owned(),
            schema_version: 1,
            aggregate: Some(AggregateRef {
                aggregate_type: "Account".to_owned(),
                aggregate_id: account.to_string(),
                sequence: i64::try_from(before).unwrap_or(i64::MAX - 1) + 1,
            }),
            correlation_id: "a day at the counter".to_owned(),
            causation_id: None,
            producer: "counter".to_owned(),
            occurred_at: OffsetDateTime::UNIX_EPOCH,
            traceparent: None,
            tracestate: None,
            headers: BTreeMap::new(),
        },
        payload: format!(
            r#"{{"account_id":{account},"amount_cents":1,"note":"a deposit at the counter"}}"#
        ),
    }
}

/// A broker that delivers message after message as fast as they are taken.
#[derive(Clone)]
pub(crate) struct Source(Arc<Counts>);

struct Counts {
    /// How many it has, at most.
    most: u64,
    /// Until when it delivers.
    until: Instant,
    delivered: AtomicU64,
    acknowledged: AtomicU64,
    given_back: AtomicU64,
    /// All that were delivered are acknowledged, and there will be no more.
    done: Notify,
}

impl Source {
    /// Delivers for a time.
    pub(crate) fn lasting(span: Duration) -> Self {
        Self::new(u64::MAX, Instant::now() + span)
    }

    /// Delivers so many.
    pub(crate) fn of(messages: u64) -> Self {
        Self::new(messages, Instant::now() + Duration::from_secs(3_600))
    }

    fn new(most: u64, until: Instant) -> Self {
        Self(Arc::new(Counts {
            most,
            until,
            delivered: AtomicU64::new(0),
            acknowledged: AtomicU64::new(0),
            given_back: AtomicU64::new(0),
            done: Notify::new(),
        }))
    }

    /// Resolves when all are acknowledged.
    pub(crate) async fn done(self) {
        self.0.done.notified().await;
    }

    /// How many were delivered; fails unless just as many were acknowledged.
    pub(crate) fn check(&self) -> Result<u64> {
        let delivered = self.0.delivered.load(Ordering::SeqCst);
        let acknowledged = self.0.acknowledged.load(Ordering::SeqCst);
        let given_back = self.0.given_back.load(Ordering::SeqCst);
        ensure!(
            delivered == acknowledged && given_back == 0,
            "{acknowledged} of {delivered} messages were acknowledged, {given_back} given back"
        );
        Ok(delivered)
    }

    fn is_over(&self) -> bool {
        self.0.delivered.load(Ordering::SeqCst) >= self.0.most || Instant::now() >= self.0.until
    }

    fn tell_if_done(&self) {
        let acknowledged = self.0.acknowledged.load(Ordering::SeqCst);
        if acknowledged == self.0.delivered.load(Ordering::SeqCst) && self.is_over() {
            self.0.done.notify_one();
        }
    }
}

#[async_trait]
impl Subscriber for Source {
    async fn subscribe(
        &self,
        _subscription: Subscription,
    ) -> Result<Box<dyn Deliveries>, BrokerError> {
        Ok(Box::new(self.clone()))
    }
}

#[async_trait]
impl Deliveries for Source {
    async fn next(&mut self) -> Result<Option<Delivery>, BrokerError> {
        if self.is_over() {
            self.tell_if_done();
            return pending().await;
        }
        // A broker's client reads from a socket now and then.
        tokio::task::consume_budget().await;
        let number = self.0.delivered.fetch_add(1, Ordering::SeqCst);
        let answer = Slip(self.clone());
        Ok(Some(Delivery::new(message(number), 1, answer)))
    }
}

/// Counts the answer to one message.
struct Slip(Source);

#[async_trait]
impl Acknowledge for Slip {
    async fn ack(self: Box<Self>) -> Result<(), BrokerError> {
        self.0.0.acknowledged.fetch_add(1, Ordering::SeqCst);
        self.0.tell_if_done();
        Ok(())
    }

    async fn nack(self: Box<Self>) -> Result<(), BrokerError> {
        self.0.0.given_back.fetch_add(1, Ordering::SeqCst);
        Ok(())
    }
}
