use std::any::Any;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures_util::FutureExt;
use tokio::time::{Instant, timeout_at};

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

/// Publishes messages, at the latest until `deadline`.
///
/// Only what the publisher confirmed counts as taken, and of each key only what stands before the
/// first failure: a timeout, a panic and missing results are failures.
pub(super) async fn publish(
    publisher: Arc<dyn Publisher>,
    batch: Vec<Taken<Key, Item>>,
    deadline: Instant,
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
    let results = call(&*publisher, &messages, deadline).await;
    sort_out(keys, messages, results)
}

async fn call(
    publisher: &dyn Publisher,
    messages: &[Message],
    deadline: Instant,
) -> Vec<Result<(), PublishError>> {
    let call = AssertUnwindSafe(async { publisher.publish(messages).await }).catch_unwind();
    let failure = match timeout_at(deadline, call).await {
        Ok(Ok(results)) if results.len() == messages.len() => return results,
        Ok(Ok(mut results)) => {
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
        Ok(Err(panic)) => format!("the publisher panicked: {}", panic_text(&*panic)),
        Err(_) => "the publisher did not answer in time".to_owned(),
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
