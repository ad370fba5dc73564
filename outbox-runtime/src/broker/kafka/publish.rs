//! Publishing.

use std::sync::Arc;

use rdkafka::error::{KafkaError, RDKafkaErrorCode};

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
    let options = &broker.settings.options;
    let record = record::write(message, options).map_err(PublishError::permanent)?;
    let limit = options.confirm_within;
    match tokio::time::timeout(limit, deliver(broker, &record)).await {
        Ok(result) => result,
        Err(_) => {
            // Perhaps it is the topic that is gone.
            broker.shared.topology.forget(&record.topic);
            let producer = broker.producer(Batching::Many);
            let text = format!("Kafka did not confirm the message within {limit:?}");
            Err(PublishError::transient(match producer {
                Ok(producer) => producer.explain(text),
                Err(_) => text,
            }))
        }
    }
}

/// Sends the record, and once more where something can be done about why it failed.
async fn deliver(broker: &KafkaBroker, record: &Record) -> Result<(), PublishError> {
    let shared = &broker.shared;
    let mut batching = Batching::Many;
    let mut may_declare = broker.settings.options.declare;
    loop {
        let declared = shared.topology.ensure(&record.topic, &broker.settings);
        if declared.await.map_err(PublishError::transient)? == Declared::Created {
            shared.producers.replace_all();
        }
        let producer = broker.producer(batching)?;
        let Err(error) = producer.send(record).await else {
            return Ok(());
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
            failure => return Err(failure.into_error(record, &producer, &error)),
        }
    }
}

impl KafkaBroker {
    fn producer(&self, batching: Batching) -> Result<Arc<Producer>, PublishError> {
        let settings = &self.settings;
        let limit = settings.options.confirm_within;
        let producer = self.shared.producers.get(&settings.config, limit, batching);
        producer.map_err(PublishError::transient)
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
