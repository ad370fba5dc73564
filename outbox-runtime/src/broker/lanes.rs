use std::collections::HashMap;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use tokio::time::Instant;

use super::error::PublishError;
use crate::domain::Message;

/// Publishes each ordering key's messages one after another, and the keys side by side.
///
/// It is what most adapters do in [`Publisher::publish`](super::Publisher::publish): no two
/// messages of one key are in flight at once, so a failure can't be overtaken, and what stands
/// behind a failure is [withheld](PublishError::withheld). So is what has not begun within
/// `start_within`, so that many messages of one key, at a slow broker, don't take the whole call over
/// the relay's publish timeout: the relay then offers them at once in another call. Choose it so
/// that one more message can still be confirmed. The first message of each key is always begun.
///
/// ```
/// use std::time::Duration;
/// use outbox_runtime::broker::publish_in_lanes;
///
/// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
/// let results = publish_in_lanes(&[], Duration::from_secs(2), async |_message| Ok(())).await;
/// assert!(results.is_empty());
/// # });
/// ```
///
/// # Cancel safety
/// Dropping it drops what is in flight; those messages count as not published.
pub async fn publish_in_lanes<'a, F, Sent>(
    messages: &'a [Message],
    start_within: Duration,
    publish: F,
) -> Vec<Result<(), PublishError>>
where
    F: Fn(&'a Message) -> Sent,
    Sent: Future<Output = Result<(), PublishError>>,
{
    let mut lanes: HashMap<LaneKey<'a>, Vec<usize>> = HashMap::new();
    for (index, message) in messages.iter().enumerate() {
        lanes
            .entry(LaneKey::of(message, index))
            .or_default()
            .push(index);
    }
    let publish = &publish;
    // Without an end if there is none that far away.
    let latest = Instant::now().checked_add(start_within);
    let is_late = move || latest.is_some_and(|latest| Instant::now() >= latest);
    let mut running: FuturesUnordered<_> = lanes
        .into_values()
        .map(|lane| async move {
            let mut results = Vec::with_capacity(lane.len());
            let mut failed = false;
            for index in lane {
                let is_to_wait = failed || !results.is_empty() && is_late();
                let result = match messages.get(index) {
                    Some(message) if !is_to_wait => publish(message).await,
                    _ => Err(PublishError::withheld()),
                };
                failed |= result.is_err();
                results.push((index, result));
            }
            results
        })
        .collect();
    let mut results: Vec<_> = messages
        .iter()
        .map(|_| Err(PublishError::withheld()))
        .collect();
    while let Some(lane) = running.next().await {
        for (index, result) in lane {
            if let Some(place) = results.get_mut(index) {
                *place = result;
            }
        }
    }
    results
}

#[derive(PartialEq, Eq, Hash)]
enum LaneKey<'a> {
    Aggregate(&'a str, &'a str),
    /// A message without an aggregate has a lane of its own.
    Alone(usize),
}

impl<'a> LaneKey<'a> {
    fn of(message: &'a Message, index: usize) -> Self {
        match &message.metadata.aggregate {
            Some(aggregate) => Self::Aggregate(&aggregate.aggregate_type, &aggregate.aggregate_id),
            None => Self::Alone(index),
        }
    }
}

#[cfg(test)]
mod tests;
