//! Publishing.

use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use tokio::time::timeout;

use super::KafkaBroker;
use super::producer::{Batching, Producer, Record};
use super::record;
use super::topology::{self, Declared};
use crate::broker::{PublishError, publish_in_lanes};
use crate::domain::Message;

/// Publishes each key's messages one after another: librdkafka may give up a message and go on
/// with the next one of its partition.
pub(super) async fn publish(
    broker: &KafkaBroker,
    messages: &[Message],
) -> Vec<Result<(), PublishError>> {
    publish_in_lanes(messages, |message| publish_one(broker, message)).await
}

async fn publish_one(broker: &KafkaBroker, message: &Message) -> Result<(), PublishError> {
    let record = record::write(message, &broker.settings.options);
    deliver(broker, &record.map_err(PublishError::permanent)?).await
}

/// Sends the record, and once more where something can be done about why it failed.
async fn deliver(broker: &KafkaBroker, record: &Record) -> Result<(), PublishError> {
    let (settings, shared) = (&broker.settings, &broker.shared);
    let limit = settings.options.confirm_within;
    let mut batching = Batching::Many;
    let mut may_declare = settings.options.declare;
    loop {
        let declared = timeout(limit, shared.topology.ensure(&record.topic, settings)).await;
        let declared = declared.map_err(|_| {
            let topic = &record.topic;
            PublishError::transient(format!("Kafka did not answer for {topic} within {limit:?}"))
        })?;
        if declared.map_err(PublishError::transient)? == Declared::Created {
            shared.producers.replace_all();
        }
        let producer = shared.producers.get(&settings.config, limit, batching);
        let producer = producer.map_err(PublishError::transient)?;
        producer.started().await;
        let error = match timeout(limit, producer.send(record)).await {
            Ok(Ok(())) => return Ok(()),
            Ok(Err(error)) => error,
            Err(_) => KafkaError::MessageProduction(RDKafkaErrorCode::MessageTimedOut),
        };
        if producer.is_broken() {
            shared.producers.replace(&producer);
        }
        match Failure::of(&error) {
            Failure::NoTopic if may_declare => {
                may_declare = false;
                shared.topology.forget(&record.topic);
                shared.producers.replace(&producer);
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
