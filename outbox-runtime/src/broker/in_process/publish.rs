use futures_util::future::try_join_all;
use tokio::time::Instant;

use super::InProcessBroker;
use super::delivery::Parcel;
use crate::broker::{PublishError, publish_in_lanes};
use crate::domain::Message;

/// Publishes each ordering key's messages one after another, and the keys side by side.
pub(super) async fn publish(
    broker: &InProcessBroker,
    messages: &[Message],
) -> Vec<Result<(), PublishError>> {
    let deadline = Instant::now() + broker.confirm_within;
    let publish = |message| publish_one(broker, message, deadline);
    publish_in_lanes(messages, broker.confirm_within, publish).await
}

/// Hands the message to every group that wants it and waits until each has acknowledged it.
async fn publish_one(
    broker: &InProcessBroker,
    message: &Message,
    deadline: Instant,
) -> Result<(), PublishError> {
    let queues = broker.route(message).map_err(|group| {
        PublishError::transient(format!(
            "the group `{group}` of the in-process broker has no member for {} at the moment",
            message.metadata.event_type
        ))
    })?;
    let confirmed = try_join_all(queues.into_iter().map(async |queue| {
        let (parcel, answered) = Parcel::new(message.clone());
        queue.send(parcel).await.map_err(|_| gone())?;
        // The queue's own sender must not keep a group alive that was forgotten meanwhile.
        drop(queue);
        answered.await.map(drop).map_err(|_| returned())
    }));
    tokio::time::timeout_at(deadline, confirmed)
        .await
        .map_err(|_| {
            PublishError::transient(format!(
                "a consumer group did not acknowledge within {:?}",
                broker.confirm_within
            ))
        })?
        .map(drop)
}

fn gone() -> PublishError {
    PublishError::transient("a consumer group left before it took the message")
}

fn returned() -> PublishError {
    PublishError::transient("a consumer group gave the message back")
}
