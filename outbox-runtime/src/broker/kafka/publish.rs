//! Publishing.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use futures_util::future::join_all;
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use tokio::time::timeout;

use super::producer::{Batching, Producer, Record};
use super::record;
use super::topology::{self, Declared};
use super::{KafkaBroker, Settings};
use crate::broker::{PublishError, publish_in_lanes};
use crate::domain::Message;

/// Publishes each key's messages one after another: librdkafka may give up a message and go on
/// with the next one of its partition.
pub(super) async fn publish(
    broker: &KafkaBroker,
    messages: &[Message],
) -> Vec<Result<(), PublishError>> {
    let start_within = broker.settings.options.start_within();
    let refused = prepare(broker, messages).await;
    let publish = |message| publish_one(broker, message, &refused);
    publish_in_lanes(messages, start_within, publish).await
}

/// Why topics can't be used now.
type Refused = BTreeMap<String, String>;

/// Sees to topics and producer before the first message's time begins.
async fn prepare(broker: &KafkaBroker, messages: &[Message]) -> Refused {
    let options = &broker.settings.options;
    let types = messages.iter().map(|message| &message.metadata.event_type);
    let topics: BTreeSet<&str> = types.map(|name| options.topics.of(name)).collect();
    let ensured = topics.into_iter().map(async |topic| {
        let topic = record::topic_name(options, topic);
        let error = ensure(broker, &topic).await.err()?;
        Some((topic, error))
    });
    let ensured = join_all(ensured).await;
    // Without one, each message says so.
    if let Ok(producer) = broker.producer(Batching::Many) {
        producer.started().await;
    }
    ensured.into_iter().flatten().collect()
}

async fn ensure(broker: &KafkaBroker, topic: &str) -> Result<(), String> {
    let (settings, shared) = (&broker.settings, &broker.shared);
    let limit = settings.options.confirm_within;
    match timeout(limit, shared.topology.ensure(topic, settings)).await {
        Ok(Ok(Declared::Existing)) => Ok(()),
        Ok(Ok(Declared::Created)) => {
            shared.producers.replace_all();
            Ok(())
        }
        Ok(Err(error)) => Err(error.to_string()),
        Err(_) => Err(format!(
            "Kafka did not answer for the topic {topic} within {limit:?}"
        )),
    }
}

async fn publish_one(
    broker: &KafkaBroker,
    message: &Message,
    refused: &Refused,
) -> Result<(), PublishError> {
    let record = record::write(message, &broker.settings.options);
    let record = record.map_err(PublishError::permanent)?;
    match refused.get(&record.topic) {
        Some(error) => Err(PublishError::transient(error.clone())),
        None => deliver(broker, &record).await,
    }
}

/// Sends the record, and once more where something can be done about why it failed.
async fn deliver(broker: &KafkaBroker, record: &Record) -> Result<(), PublishError> {
    let (settings, shared) = (&broker.settings, &broker.shared);
    let limit = settings.options.confirm_within;
    let mut batching = Batching::Many;
    let mut may_declare = settings.options.declare;
    loop {
        let ensured = ensure(broker, &record.topic).await;
        ensured.map_err(PublishError::transient)?;
        let producer = broker.producer(batching);
        let producer = producer.map_err(PublishError::transient)?;
        producer.started().await;
        let error = match timeout(limit, producer.send(record)).await {
            Ok(Ok(())) => return Ok(()),
            Ok(Err(error)) => error,
            Err(_) => KafkaError::MessageProduction(RDKafkaErrorCode::MessageTimedOut),
        };
        let failure = Failure::of(&error);
        // A producer looks for a missing topic no more than every few minutes.
        if producer.is_broken() || matches!(failure, Failure::NoTopic) {
            shared.producers.replace(&producer);
        }
        match failure {
            Failure::NoTopic if may_declare => {
                may_declare = false;
                shared.topology.forget(&record.topic);
            }
            // All that was in its request is refused; only one of them need be too large.
            Failure::Refused if batching == Batching::Many => batching = Batching::Alone,
            failure => {
                // Perhaps it is the topic that is gone.
                if matches!(failure, Failure::Passing) {
                    shared.topology.forget(&record.topic);
                }
                return Err(failure.into_error(record, &producer, &error));
            }
        }
    }
}

impl KafkaBroker {
    fn producer(&self, batching: Batching) -> Result<Arc<Producer>, String> {
        let Settings {
            config, options, ..
        } = &*self.settings;
        let producers = &self.shared.producers;
        let producer = producers.get(config, options.confirm_within, batching);
        producer.map_err(|error| error.to_string())
    }
}

/// What an error is about.
enum Failure {
    /// The topic is not there.
    NoTopic,
    /// This message, or another one of its request.
    Refused,
    /// Who signed in may not do this.
    Forbidden,
    /// What passes by itself.
    Passing,
}

impl Failure {
    fn of(error: &KafkaError) -> Self {
        match error {
            KafkaError::MessageProduction(code) => Self::of_code(*code),
            _ => Self::Passing,
        }
    }

    const fn of_code(code: RDKafkaErrorCode) -> Self {
        match code {
            RDKafkaErrorCode::UnknownTopic
            | RDKafkaErrorCode::UnknownTopicOrPartition
            | RDKafkaErrorCode::UnknownPartition => Self::NoTopic,
            RDKafkaErrorCode::MessageSizeTooLarge
            | RDKafkaErrorCode::MessageBatchTooLarge
            | RDKafkaErrorCode::InvalidRecord => Self::Refused,
            RDKafkaErrorCode::TopicAuthorizationFailed
            | RDKafkaErrorCode::ClusterAuthorizationFailed => Self::Forbidden,
            _ => Self::Passing,
        }
    }

    fn into_error(self, record: &Record, producer: &Producer, error: &KafkaError) -> PublishError {
        let topic = &record.topic;
        match self {
            Self::NoTopic => PublishError::transient(topology::is_missing(topic)),
            Self::Refused => PublishError::permanent(format!(
                "{error}, for a message of {} bytes to {topic}; if that is its size, make it smaller \
                 or raise `message.max.bytes` here and `max.message.bytes` of the topic",
                record.body.len()
            )),
            Self::Forbidden => PublishError::transient(format!(
                "{error}: the user may not write to {topic}; grant it that"
            )),
            Self::Passing => PublishError::transient(producer.explain(error)),
        }
    }
}
