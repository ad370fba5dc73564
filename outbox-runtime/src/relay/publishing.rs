mod spans;

use std::any::Any;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};
use tracing::Instrument;

use self::spans::PublishSpans;
use super::lanes::{Taken, Weighed};
use crate::broker::{PublishError, Publisher};
use crate::domain::{Message, Metadata, Shard};
use crate::fault::{self, Point};
use crate::store::Unreadable;
use crate::telemetry::metrics::Metrics;

/// What messages are ordered by.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Key {
    pub(super) shard: Shard,
    /// The ordering key as text.
    pub(super) lane: Arc<str>,
}

impl Key {
    pub(super) fn of(shard: Shard, metadata: &Metadata) -> Self {
        Self {
            shard,
            lane: metadata.lane().into(),
        }
    }

    /// Of a row that is no message: its aggregate's, where that can be read.
    pub(super) fn of_unreadable(shard: Shard, id: i64, row: &Unreadable) -> Self {
        match &row.aggregate {
            Some(aggregate) => Self {
                shard,
                lane: aggregate.lane().into(),
            },
            None => Self::alone(shard, id),
        }
    }

    /// Of a row behind which nobody waits.
    pub(super) fn alone(shard: Shard, id: i64) -> Self {
        Self {
            shard,
            lane: format!("\u{1f}\u{1f}{id}").into(),
        }
    }
}

/// A message on its way.
#[derive(Debug)]
pub(super) struct Item {
    pub(super) id: i64,
    /// The epoch in which its shard was owned when it was read.
    pub(super) epoch: i64,
    pub(super) content: Result<Box<Message>, Box<Unreadable>>,
    /// How often it failed and how long ago that began, as far as it counts.
    pub(super) failed: (u32, Duration),
}

impl Item {
    /// What is in the message, where the row is one.
    pub(super) fn payload(&self) -> Option<&str> {
        self.content.as_ref().ok().map(|message| &*message.payload)
    }

    /// The event's name, where it could be read.
    pub(super) fn event_type(&self) -> Option<&str> {
        match &self.content {
            Ok(message) => Some(&message.metadata.event_type),
            Err(unreadable) => unreadable.event_type.as_deref(),
        }
    }
}

impl Weighed for Item {
    /// What its content takes up: payload and headers. A row that is no message has neither.
    fn bytes(&self) -> usize {
        self.content.as_ref().map_or(0, |message| message.bytes())
    }
}

/// What became of the messages of one key.
#[derive(Debug)]
pub(super) struct Published {
    pub(super) key: Key,
    /// Id and epoch of those that the broker took, which were the first ones.
    pub(super) taken: Vec<(i64, i64)>,
    /// The others, in order.
    pub(super) rest: Vec<Item>,
    /// Why the first of `rest` was not taken, if there is one.
    pub(super) error: Option<PublishError>,
}

/// Until when a call to the publisher may go on.
#[derive(Debug)]
pub(super) struct Limit {
    /// The end of the call's own time.
    pub(super) latest: Instant,
    /// The end of the lease, which moves as it is renewed: past it, a new owner may be publishing
    /// what comes after.
    pub(super) lease: watch::Receiver<Instant>,
}

impl Limit {
    async fn reached(mut self) {
        loop {
            let until = self.latest.min(*self.lease.borrow_and_update());
            tokio::select! {
                biased;
                () = sleep_until(until) => return,
                renewed = self.lease.changed() => {
                    // A lease that was renewed too late had ended.
                    if renewed.is_err() || Instant::now() >= until {
                        return;
                    }
                }
            }
        }
    }
}

/// A call to the publisher that is over.
#[derive(Debug)]
pub(super) struct Done {
    pub(super) began: Instant,
    pub(super) published: Vec<Published>,
}

/// Publishes messages, within the limit.
///
/// Only what the publisher confirmed counts as taken, and of each key only what stands before the
/// first failure: a timeout, a panic, missing results and a row that is no message are failures.
pub(super) async fn publish(
    publisher: Arc<dyn Publisher>,
    batch: Vec<Taken<Key, Item>>,
    limit: Limit,
    metrics: Metrics,
) -> Done {
    let began = Instant::now();
    let count = batch.iter().map(|taken| taken.items.len()).sum();
    let mut messages = Vec::with_capacity(count);
    let mut keys = Vec::with_capacity(batch.len());
    for Taken { key, items } in batch {
        let mut sent = Vec::with_capacity(items.len());
        let mut kept = Vec::new();
        for item in items {
            match item.content {
                Ok(message) if kept.is_empty() => {
                    sent.push((item.id, item.epoch, item.failed));
                    messages.push(*message);
                }
                content => kept.push(Item { content, ..item }),
            }
        }
        keys.push(Sent { key, sent, kept });
    }
    let results = match messages.is_empty() {
        true => Vec::new(),
        false => {
            let sent = keys.iter().flat_map(|key| &key.sent);
            let attempts = sent.map(|&(_, _, (failed, _))| failed.saturating_add(1));
            let spans = PublishSpans::open(&messages, attempts);
            let call = call(&*publisher, &messages, limit);
            let results = call.instrument(spans.around(&messages)).await;
            spans.close(&results);
            metrics.batch();
            results
        }
    };
    Done {
        began,
        published: sort_out(keys, messages, results, &metrics),
    }
}

/// The messages of one key in a call.
struct Sent {
    key: Key,
    /// Id, epoch and failures of those that go to the publisher.
    sent: Vec<(i64, i64, (u32, Duration))>,
    /// A row that is no message, and what is behind it.
    kept: Vec<Item>,
}

async fn call(
    publisher: &dyn Publisher,
    messages: &[Message],
    limit: Limit,
) -> Vec<Result<(), PublishError>> {
    let call = AssertUnwindSafe(hand_over(publisher, messages)).catch_unwind();
    let outcome = tokio::select! {
        biased;
        outcome = call => Some(outcome),
        () = limit.reached() => None,
    };
    let failure = match outcome {
        Some(Ok(results)) if results.len() == messages.len() => return results,
        Some(Ok(mut results)) => {
            let text = format!(
                "the publisher gave {} results for {} messages",
                results.len(),
                messages.len()
            );
            results.truncate(messages.len());
            results.resize_with(messages.len(), || {
                Err(PublishError::transient(text.clone()))
            });
            return results;
        }
        Some(Err(panic)) => format!("the publisher panicked: {}", panic_text(&*panic)),
        None => "the publisher did not answer in time".to_owned(),
    };
    messages
        .iter()
        .map(|_| Err(PublishError::transient(failure.clone())))
        .collect()
}

async fn hand_over(
    publisher: &dyn Publisher,
    messages: &[Message],
) -> Vec<Result<(), PublishError>> {
    let all = |fault: &std::io::Error| {
        let failed = |_| Err(PublishError::transient(fault.to_string()));
        messages.iter().map(failed).collect()
    };
    if let Err(fault) = fault::at(Point::BeforePublish).await {
        return all(&fault);
    }
    let results = publisher.publish(messages).await;
    match fault::at(Point::AfterPublish).await {
        Ok(()) => results,
        Err(fault) => all(&fault),
    }
}

fn sort_out(
    keys: Vec<Sent>,
    messages: Vec<Message>,
    results: Vec<Result<(), PublishError>>,
    metrics: &Metrics,
) -> Vec<Published> {
    let delay = metrics.publish_delay();
    let mut answered = messages.into_iter().zip(results);
    keys.into_iter()
        .map(|Sent { key, sent, kept }| {
            let mut published = Published {
                key,
                taken: Vec::with_capacity(sent.len()),
                rest: Vec::new(),
                error: None,
            };
            for ((id, epoch, failed), (message, result)) in sent.into_iter().zip(&mut answered) {
                match result {
                    Ok(()) if published.rest.is_empty() => {
                        delay.record_since(message.metadata.occurred_at);
                        published.taken.push((id, epoch));
                    }
                    result => {
                        published.error = published.error.take().or(result.err());
                        published.rest.push(Item {
                            id,
                            epoch,
                            content: Ok(Box::new(message)),
                            failed,
                        });
                    }
                }
            }
            if published.rest.is_empty()
                && let Some(Err(unreadable)) = kept.first().map(|item| &item.content)
            {
                let text = format!("the row is no message: {}", unreadable.reason);
                published.error = Some(PublishError::permanent(text));
            }
            published.rest.extend(kept);
            published
        })
        .collect()
}

fn panic_text(panic: &(dyn Any + Send)) -> &str {
    panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("without a message")
}

#[cfg(test)]
mod tests;
