//! Topics: made where they are missing.

use std::collections::HashSet;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rdkafka::admin::{AdminClient, AdminOptions, NewTopic, TopicReplication};
use rdkafka::client::Client;
use rdkafka::config::FromClientConfigAndContext;
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::types::RDKafkaType;
use tracing::info;

use super::Settings;
use super::context::Context;
use super::disposal::Disposed;
use crate::broker::BoxError;

/// The broker's own number of copies.
const OF_THE_BROKER: i32 = -1;

/// The topics that are known to be there.
#[derive(Default)]
pub(super) struct Topology {
    known: Mutex<HashSet<String>>,
    /// Kept while it fails, so that not each attempt connects anew.
    admin: tokio::sync::Mutex<Option<Admin>>,
}

/// What became of a topic that has to be there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Declared {
    Existing,
    Created,
}

impl Topology {
    /// Makes the topic if it is missing and that is permitted.
    ///
    /// # Cancel safety
    /// A dropped call's topic may be made or not, and the next call asks again.
    pub(super) async fn ensure(
        &self,
        topic: &str,
        settings: &Settings,
    ) -> Result<Declared, BoxError> {
        if !settings.options.declare || self.is_known(topic) {
            return Ok(Declared::Existing);
        }
        // One asks and the others wait for what it hears.
        let mut slot = self.admin.lock().await;
        if self.is_known(topic) {
            return Ok(Declared::Existing);
        }
        let admin = match &*slot {
            Some(admin) => admin,
            None => slot.insert(Admin::new(settings)?),
        };
        let declared = admin.create(topic, settings).await?;
        self.lock().insert(topic.to_owned());
        *slot = None;
        Ok(declared)
    }

    /// Asks the broker about the topic again when it is needed next.
    pub(super) fn forget(&self, topic: &str) {
        self.lock().remove(topic);
    }

    fn is_known(&self, topic: &str) -> bool {
        self.lock().contains(topic)
    }

    fn lock(&self) -> MutexGuard<'_, HashSet<String>> {
        // Nothing panics while the lock is held.
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Which of these topics are not there. It blocks, at most for `limit` each.
pub(super) fn missing(
    settings: &Settings,
    topics: &[String],
    limit: Duration,
) -> Result<Vec<String>, BoxError> {
    let context = Context::new(&settings.config);
    let config = settings
        .config
        .client([], [("allow.auto.create.topics", "false")])?;
    let explain = |error: KafkaError| context.explain(error);
    let native = config.create_native_config().map_err(explain)?;
    let kind = RDKafkaType::RD_KAFKA_PRODUCER;
    let client = Client::new(&config, native, kind, context.clone()).map_err(explain)?;
    let mut missing = Vec::new();
    for topic in topics {
        let metadata = match client.fetch_metadata(Some(topic), limit) {
            Ok(metadata) => metadata,
            Err(error) => return Err(explain(error).into()),
        };
        let is_there = metadata.topics().iter().any(|known| {
            known.name() == topic && known.error().is_none() && !known.partitions().is_empty()
        });
        if !is_there {
            missing.push(topic.clone());
        }
    }
    Ok(missing)
}

/// What says that a topic is missing, and what to do.
pub(super) fn is_missing(topic: &str) -> String {
    format!(
        "Kafka has no topic {topic}; make it with as many partitions as the other services expect, \
         or let BrokerOptions::declare do it"
    )
}

/// Asks for topics.
struct Admin {
    client: Disposed<AdminClient<Context>>,
    context: Context,
}

impl Admin {
    fn new(settings: &Settings) -> Result<Self, BoxError> {
        let config = settings.config.client([], [])?;
        let context = Context::new(&settings.config);
        let client = AdminClient::from_config_and_context(&config, context.clone())
            .map_err(|error| context.explain(error))?;
        Ok(Self {
            client: Disposed::new(client),
            context,
        })
    }

    async fn create(&self, topic: &str, settings: &Settings) -> Result<Declared, BoxError> {
        let replication = settings.replication.unwrap_or(OF_THE_BROKER);
        let created = self.create_with(topic, replication, settings).await?;
        let created = match created {
            // Servers from before Kafka 2.4 have no number of their own.
            Err(RDKafkaErrorCode::InvalidReplicationFactor) if settings.replication.is_none() => {
                self.create_with(topic, 1, settings).await?
            }
            other => other,
        };
        match created {
            Ok(()) => {
                info!(topic, "made the topic");
                Ok(Declared::Created)
            }
            Err(RDKafkaErrorCode::TopicAlreadyExists) => Ok(Declared::Existing),
            // Who may not make topics may still use those that are there.
            Err(
                RDKafkaErrorCode::TopicAuthorizationFailed
                | RDKafkaErrorCode::ClusterAuthorizationFailed,
            ) => Ok(Declared::Existing),
            Err(code) => {
                let error = format!("the topic {topic} can't be made: {code}");
                Err(self.context.explain(error).into())
            }
        }
    }

    async fn create_with(
        &self,
        topic: &str,
        replication: i32,
        settings: &Settings,
    ) -> Result<Result<(), RDKafkaErrorCode>, BoxError> {
        let limit = Some(settings.options.confirm_within);
        let options = AdminOptions::new()
            .request_timeout(limit)
            .operation_timeout(limit);
        let partitions = i32::from(settings.options.partitions.get());
        let wanted = NewTopic::new(topic, partitions, TopicReplication::Fixed(replication));
        let client = self.client.get().ok_or("the client is gone")?;
        let answers = client
            .create_topics([&wanted], &options)
            .await
            .map_err(|error| self.context.explain(error))?;
        match answers.into_iter().next() {
            Some(Ok(_)) => Ok(Ok(())),
            Some(Err((_, code))) => Ok(Err(code)),
            None => Err("Kafka did not say whether it made the topic".into()),
        }
    }
}
