use async_nats::jetstream::stream::{Config, Info, StorageType, Stream};

use super::connection::Established;
use super::{NatsBroker, names};
use crate::broker::BoxError;

/// The stream of a topic, made if it is missing and that is allowed.
pub(super) async fn of_topic(
    broker: &NatsBroker,
    established: &Established,
    topic: &str,
) -> Result<Stream<Info>, BoxError> {
    let topics = &broker.options.topics;
    let name = names::stream(topics, topic);
    if !broker.options.declare {
        return existing(established, &name).await;
    }
    let config = Config {
        name,
        subjects: vec![names::subjects(topics, topic)],
        storage: StorageType::File,
        num_replicas: broker.replicas,
        max_age: broker.keep.unwrap_or_default(),
        // The window must not be longer than messages are kept.
        duplicate_window: broker.keep.map_or(broker.duplicate_window, |keep| {
            keep.min(broker.duplicate_window)
        }),
        ..Config::default()
    };
    let subjects = config.subjects.clone();
    let stream = established.jetstream.get_or_create_stream(config).await;
    let stream = stream
        .map_err(|error| format!("the stream of the topic {topic} can't be made: {error}"))?;
    let known = &stream.cached_info().config;
    match subjects.iter().all(|subject| known.subjects.contains(subject)) {
        true => Ok(stream),
        false => Err(format!(
            "the stream {} takes {:?} and not {subjects:?}: another namespace has the same name for \
             its stream; rename the namespace or the topic, or mend the stream's subjects",
            known.name, known.subjects
        )
        .into()),
    }
}

/// A stream that is there.
pub(super) async fn existing(
    established: &Established,
    name: &str,
) -> Result<Stream<Info>, BoxError> {
    let stream = established.jetstream.get_stream(name).await;
    stream
        .map_err(|error| format!("the stream {name} can't be read: {error}; make it first").into())
}
