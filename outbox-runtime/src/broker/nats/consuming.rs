//! Consumers at the server: one generation after the other, each from where the last one was.

use std::time::Duration;

use async_nats::jetstream::consumer::pull::Config;
use async_nats::jetstream::consumer::{AckPolicy, Consumer, DeliverPolicy};
use async_nats::jetstream::stream::{Info, RetentionPolicy, Stream};
use futures_util::TryStreamExt;

use super::names::ConsumerName;
use crate::broker::BoxError;
use crate::clock::Clock;

/// What a reader wants of a stream.
pub(super) struct Wanted {
    /// What the group's consumers of it begin with.
    pub(super) prefix: String,
    /// The subjects that it reads; empty for all.
    pub(super) filter: String,
    pub(super) ack_wait: Duration,
    pub(super) most_pending: usize,
}

/// Makes a consumer that starts at the first message that the group has not acknowledged, and
/// removes those before it, so that nobody reads by them any more.
///
/// The former one stands until the new one does: at no time is the group's position in none.
pub(super) async fn take_over(
    stream: &Stream<Info>,
    wanted: &Wanted,
) -> Result<Consumer<Config>, BoxError> {
    let state = stream.cached_info();
    if state.config.retention == RetentionPolicy::WorkQueue {
        return Err(format!(
            "the stream {} has the retention policy workqueue, which gives each message to one group \
             alone and lets no reader begin where the last one was; make a stream with the policy \
             limits that has it as its source, and read that",
            state.config.name
        )
        .into());
    }
    // A server that lost its end of the stream would have a later start skip what comes next.
    let end = state.state.last_sequence.saturating_add(1);
    let prefix = &wanted.prefix;
    let former = generations(stream, prefix).await?;
    let (generation, start) = match former.iter().max() {
        None => (1, None),
        Some(latest) => {
            let info = stream.consumer_info(latest.full(prefix)).await?;
            let started = match info.config.deliver_policy {
                DeliverPolicy::ByStartSequence { start_sequence } => start_sequence,
                _ => 1,
            };
            let unacknowledged = info.ack_floor.stream_sequence.saturating_add(1);
            let start = unacknowledged.max(started).min(end);
            (latest.generation.saturating_add(1), Some(start))
        }
    };
    let ours = ConsumerName {
        generation,
        nonce: Clock::system().new_id().simple().to_string(),
    };
    let name = ours.full(prefix);
    let config = Config {
        durable_name: Some(name.clone()),
        deliver_policy: match start {
            Some(start_sequence) => DeliverPolicy::ByStartSequence { start_sequence },
            None => DeliverPolicy::All,
        },
        ack_policy: AckPolicy::Explicit,
        ack_wait: wanted.ack_wait,
        filter_subject: wanted.filter.clone(),
        max_ack_pending: i64::try_from(wanted.most_pending).unwrap_or(i64::MAX),
        ..Config::default()
    };
    let consumer = stream.create_consumer(config).await?;
    // Somebody else may have done the same at the same time: the later name wins.
    let all = generations(stream, prefix).await?;
    if all.iter().any(|other| *other > ours) {
        stream.delete_consumer(&name).await?;
        return Err("another reader has taken over the partition at the same time".into());
    }
    for former in all.iter().filter(|other| **other < ours) {
        stream.delete_consumer(&former.full(prefix)).await?;
    }
    Ok(consumer)
}

async fn generations(stream: &Stream<Info>, prefix: &str) -> Result<Vec<ConsumerName>, BoxError> {
    let names: Vec<String> = stream.consumer_names().try_collect().await?;
    Ok(names
        .iter()
        .filter_map(|name| ConsumerName::parse(name, prefix))
        .collect())
}
