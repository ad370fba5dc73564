use std::any::Any;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures_util::FutureExt;
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

use super::lanes::Taken;
use crate::broker::{PublishError, Publisher};
use crate::domain::{Message, Shard};

/// What messages are ordered by.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Key {
    pub(super) shard: Shard,
    pub(super) ordering: (String, String),
}

/// A message on its way.
#[derive(Debug)]
pub(super) struct Item {
    pub(super) id: i64,
    /// The epoch in which its shard was owned when it was read.
    pub(super) epoch: i64,
    pub(super) message: Message,
}

/// What became of the messages of one key.
#[derive(Debug)]
pub(super) struct Published {
    pub(super) key: Key,
    /// Id and epoch of those that the broker took, which were the first ones.
    pub(super) taken: Vec<(i64, i64)>,
    /// The others, in order.
    pub(super) rest: Vec<Item>,
    /// Why the first of `rest` was not taken.
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

/// Publishes messages, within the limit.
///
/// Only what the publisher confirmed counts as taken, and of each key only what stands before the
/// first failure: a timeout, a panic and missing results are failures.
pub(super) async fn publish(
    publisher: Arc<dyn Publisher>,
    batch: Vec<Taken<Key, Item>>,
    limit: Limit,
) -> Vec<Published> {
    let mut messages = Vec::new();
    let mut keys = Vec::with_capacity(batch.len());
    for Taken { key, items } in batch {
        let mut places = Vec::with_capacity(items.len());
        for item in items {
            places.push((item.id, item.epoch));
            messages.push(item.message);
        }
        keys.push((key, places));
    }
    let results = call(&*publisher, &messages, limit).await;
    sort_out(keys, messages, results)
}

async fn call(
    publisher: &dyn Publisher,
    messages: &[Message],
    limit: Limit,
) -> Vec<Result<(), PublishError>> {
    let call = AssertUnwindSafe(async { publisher.publish(messages).await }).catch_unwind();
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

fn sort_out(
    keys: Vec<(Key, Vec<(i64, i64)>)>,
    messages: Vec<Message>,
    results: Vec<Result<(), PublishError>>,
) -> Vec<Published> {
    let mut answered = messages.into_iter().zip(results);
    keys.into_iter()
        .map(|(key, places)| {
            let mut published = Published {
                key,
                taken: Vec::new(),
                rest: Vec::new(),
                error: None,
            };
            for ((id, epoch), (message, result)) in places.into_iter().zip(&mut answered) {
                match result {
                    Ok(()) if published.rest.is_empty() => published.taken.push((id, epoch)),
                    result => {
                        published.error = published.error.take().or(result.err());
                        published.rest.push(Item { id, epoch, message });
                    }
                }
            }
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
