//! The producers: made when they are needed, shared by all that is published.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rdkafka::config::FromClientConfigAndContext;
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::message::OwnedHeaders;
use rdkafka::producer::{DeliveryFuture, FutureProducer, FutureRecord, Producer as _};
use tokio::time::Instant;

use super::config::Config;
use super::context::Context;
use super::disposal::Disposed;
use crate::broker::BoxError;

/// When an idempotent producer of librdkafka begins: it asks for its id after half a second, and again
/// half a second later if it was not connected by then.
const START: Duration = Duration::from_millis(1050);
/// How long to wait until there is room in librdkafka's queue again.
const QUEUE_FULL_WAIT: Duration = Duration::from_millis(10);

/// What goes into a topic.
pub(super) struct Record {
    pub(super) topic: String,
    pub(super) key: Option<String>,
    pub(super) headers: OwnedHeaders,
    pub(super) body: String,
}

/// Which messages a producer puts into one request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Batching {
    /// As many as there are.
    Many,
    /// One: what the broker refuses of a request is then this message and no other.
    Alone,
}

/// At most one producer of each kind at a time.
#[derive(Default)]
pub(super) struct Producers {
    many: Mutex<Option<Arc<Producer>>>,
    alone: Mutex<Option<Arc<Producer>>>,
}

impl Producers {
    /// The producer, made if there is none. It connects by itself.
    pub(super) fn get(
        &self,
        config: &Config,
        confirm_within: Duration,
        batching: Batching,
    ) -> Result<Arc<Producer>, BoxError> {
        let mut slot = self.slot(batching);
        if let Some(producer) = &*slot {
            return Ok(Arc::clone(producer));
        }
        let producer = Arc::new(Producer::new(config, confirm_within, batching)?);
        *slot = Some(Arc::clone(&producer));
        Ok(producer)
    }

    /// Lets a new one be made in place of this one.
    pub(super) fn replace(&self, broken: &Arc<Producer>) {
        let mut slot = self.slot(broken.batching);
        if slot
            .as_ref()
            .is_some_and(|known| Arc::ptr_eq(known, broken))
        {
            *slot = None;
        }
    }

    /// Lets new ones be made in place of all: they know of topics that are gone.
    pub(super) fn replace_all(&self) {
        *self.slot(Batching::Many) = None;
        *self.slot(Batching::Alone) = None;
    }

    fn slot(&self, batching: Batching) -> MutexGuard<'_, Option<Arc<Producer>>> {
        let slot = match batching {
            Batching::Many => &self.many,
            Batching::Alone => &self.alone,
        };
        // Nothing panics while the lock is held.
        slot.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// An idempotent producer.
pub(super) struct Producer {
    client: Disposed<FutureProducer<Context>>,
    context: Context,
    batching: Batching,
    starts_at: Instant,
}

impl Producer {
    fn new(
        config: &Config,
        confirm_within: Duration,
        batching: Batching,
    ) -> Result<Self, BoxError> {
        let limit = confirm_within.as_millis().to_string();
        // A topic that is not there is told of while somebody still waits for the message.
        let propagation = (confirm_within / 2).as_millis().to_string();
        // Each key has one message in flight, so to wait for more would only slow it down.
        let defaults = [("linger.ms", "0")];
        let fixed = [
            ("enable.idempotence", "true"),
            ("acks", "all"),
            ("partitioner", "murmur2_random"),
            ("message.timeout.ms", limit.as_str()),
            ("topic.metadata.propagation.max.ms", propagation.as_str()),
            ("allow.auto.create.topics", "false"),
        ];
        let mut client = config.client(defaults, fixed)?;
        if batching == Batching::Alone {
            client.set("batch.num.messages", "1");
        }
        let context = Context::new(config);
        let producer = FutureProducer::from_config_and_context(&client, context.clone())
            .map_err(|error| context.explain(error))?;
        // It asks for nothing, and has it connect before it begins.
        let _ = producer.client().fetch_metadata(None, Duration::ZERO);
        Ok(Self {
            client: Disposed::new(producer),
            context,
            batching,
            starts_at: Instant::now() + START,
        })
    }

    /// Waits until a new producer begins, for which no message's time should be spent.
    pub(super) async fn started(&self) {
        tokio::time::sleep_until(self.starts_at).await;
    }

    /// Sends a message and waits until the broker has confirmed it.
    ///
    /// # Cancel safety
    /// A dropped call's message may be published or not.
    pub(super) async fn send(&self, record: &Record) -> Result<(), KafkaError> {
        let confirmed = loop {
            match self.enqueue(record)? {
                Some(confirmed) => break confirmed,
                None => tokio::time::sleep(QUEUE_FULL_WAIT).await,
            }
        };
        match confirmed.await {
            Ok(Ok(_)) => Ok(()),
            Ok(Err((error, _))) => Err(error),
            Err(_) => Err(KafkaError::Canceled),
        }
    }

    /// Whether it will never publish anything again: librdkafka no longer knows what of it is
    /// published.
    pub(super) fn is_broken(&self) -> bool {
        let client = self.client.get();
        client.is_none_or(|client| client.client().fatal_error().is_some())
    }

    /// An error's text, with what the client has met.
    pub(super) fn explain(&self, error: impl fmt::Display) -> String {
        self.context.explain(error)
    }

    /// `None` while the queue is full.
    fn enqueue(&self, record: &Record) -> Result<Option<DeliveryFuture>, KafkaError> {
        let client = self.client.get().ok_or(KafkaError::Canceled)?;
        let Record {
            topic,
            key,
            headers,
            body,
        } = record;
        let mut sent = FutureRecord::to(topic)
            .payload(body.as_str())
            .headers(headers.clone());
        if let Some(key) = key {
            sent = sent.key(key.as_str());
        }
        match client.send_result(sent) {
            Ok(confirmed) => Ok(Some(confirmed)),
            Err((KafkaError::MessageProduction(RDKafkaErrorCode::QueueFull), _)) => Ok(None),
            Err((error, _)) => Err(error),
        }
    }
}
