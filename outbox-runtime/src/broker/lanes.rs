use std::collections::HashMap;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;

use super::error::PublishError;
use crate::domain::Message;

/// Publishes each ordering key's messages one after another, and the keys side by side.
///
/// It is what most adapters do in [`Publisher::publish`](super::Publisher::publish): no two
/// messages of one key are in flight at once, so a failure can't be overtaken, and what stands
/// behind a failure is [withheld](PublishError::withheld).
///
/// ```
/// use outbox_runtime::broker::{PublishError, publish_in_lanes};
///
/// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
/// let results = publish_in_lanes(&[], async |_message| Ok::<(), PublishError>(())).await;
/// assert!(results.is_empty());
/// # });
/// ```
///
/// # Cancel safety
/// Dropping it drops what is in flight; those messages count as not published.
pub async fn publish_in_lanes<'a, F, Sent>(
    messages: &'a [Message],
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
    let mut running: FuturesUnordered<_> = lanes
        .into_values()
        .map(|lane| async move {
            let mut results = Vec::with_capacity(lane.len());
            let mut failed = false;
            for index in lane {
                let result = match messages.get(index) {
                    Some(message) if !failed => publish(message).await,
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
