//! Subscribing.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;

use async_trait::async_trait;
use rdkafka::config::FromClientConfigAndContext;
use rdkafka::consumer::{Consumer, StreamConsumer};
use tokio::runtime::{Builder, Handle};
use tokio::task::spawn_blocking;

use super::assignment::{Assignment, Ticket};
use super::consume::Member;
use super::context::Context;
use super::group::GroupEvents;
use super::topology::Declared;
use super::{KafkaBroker, record, topology};
use crate::broker::cloud_events::{Binding, Decoder};
use crate::broker::{Acknowledge, BoxError, BrokerError, Deliveries, Delivery, Subscription};

/// How long the end of a runtime waits for a member to leave its group. Without that the others
/// would get its partitions only after the session's timeout.
const LEAVE_WITHIN: Duration = Duration::from_secs(3);

const SUBSCRIBING: &str = "subscribing";

pub(super) async fn subscribe(
    broker: &KafkaBroker,
    subscription: &Subscription,
) -> Result<Box<dyn Deliveries>, BrokerError> {
    let topics = broker
        .settings
        .options
        .topics
        .of_all(&subscription.event_types);
    let options = &broker.settings.options;
    let own: Vec<String> = topics
        .into_iter()
        .map(|topic| record::topic_name(options, topic))
        .collect();
    prepare(broker, &own)
        .await
        .map_err(|error| BrokerError::new(SUBSCRIBING, error))?;
    // From here on nothing waits, so that a dropped call leaves no member behind.
    let reader = join(broker, subscription, own);
    reader.map_err(|error| BrokerError::new(SUBSCRIBING, error))
}

/// Sees to it that the topics are there, which also shows whether the broker is.
async fn prepare(broker: &KafkaBroker, own: &[String]) -> Result<(), BoxError> {
    let (settings, shared) = (&broker.settings, &broker.shared);
    if settings.options.declare {
        for topic in own {
            shared.topology.forget(topic);
            if shared.topology.ensure(topic, settings).await? == Declared::Created {
                shared.producers.replace_all();
            }
        }
        return Ok(());
    }
    let (settings, own) = (Arc::clone(settings), own.to_vec());
    let limit = settings.options.confirm_within;
    let missing = spawn_blocking(move || topology::missing(&settings, &own, limit)).await??;
    match missing.first() {
        None => Ok(()),
        Some(topic) => Err(topology::is_missing(topic).into()),
    }
}

fn join(
    broker: &KafkaBroker,
    subscription: &Subscription,
    own: Vec<String>,
) -> Result<Box<dyn Deliveries>, BoxError> {
    let options = &broker.settings.options;
    // The same service in another namespace is another group.
    let group = options.topics.full_name(&subscription.group, '.');
    let config = broker.settings.config.client(
        [
            // A member that was killed is missed sooner than by librdkafka's 45 s.
            ("session.timeout.ms", "10000"),
            // So is one that stands still while the group shares out its partitions anew. Members
            // poll all the time, whatever their handlers do.
            ("max.poll.interval.ms", "30000"),
            // Only what has to move is taken from its reader.
            ("partition.assignment.strategy", "cooperative-sticky"),
            // New partitions, and topics that come or go, are noticed.
            ("topic.metadata.refresh.interval.ms", "30000"),
            ("queued.max.messages.kbytes", "16384"),
        ],
        [
            ("group.id", group.as_str()),
            ("enable.auto.commit", "false"),
            ("enable.auto.offset.store", "false"),
            ("auto.offset.reset", "earliest"),
            ("isolation.level", "read_committed"),
            ("allow.auto.create.topics", "false"),
        ],
    )?;
    let context = Context::new(&broker.settings.config);
    let assignment = Arc::new(Assignment::default());
    let events = GroupEvents {
        context: context.clone(),
        assignment: Arc::clone(&assignment),
    };
    let explain = |error| context.explain(error);
    let consumer: StreamConsumer<GroupEvents> =
        StreamConsumer::from_config_and_context(&config, events).map_err(explain)?;
    let foreign: Vec<String> = options.foreign.iter().map(|it| it.name.clone()).collect();
    let topics: Vec<&str> = own.iter().chain(&foreign).map(String::as_str).collect();
    consumer.subscribe(&topics).map_err(explain)?;
    let member = Member {
        consumer,
        assignment: Arc::clone(&assignment),
        decoder: Decoder::new(Binding::KAFKA, subscription, &options.foreign),
        own,
        foreign,
        prefetch: options.prefetch,
    };
    let (running, left) = channel::<()>();
    thread::Builder::new()
        .name("kafka-consumer".to_owned())
        .spawn(move || {
            let _running = running;
            match Builder::new_current_thread().enable_time().build() {
                Ok(runtime) => runtime.block_on(member.run()),
                Err(error) => {
                    let error = BrokerError::new(SUBSCRIBING, error);
                    member.assignment.fail(error);
                }
            }
        })?;
    Ok(Box::new(Reader {
        assignment,
        left: Some(left),
    }))
}

/// A subscription. Dropping it ends the member's thread.
struct Reader {
    assignment: Arc<Assignment>,
    /// Disconnected once the member has left its group.
    left: Option<Receiver<()>>,
}

#[async_trait]
impl Deliveries for Reader {
    async fn next(&mut self) -> Result<Option<Delivery>, BrokerError> {
        let next = self.assignment.next().await?;
        Ok(next.map(|waiting| {
            let attempt = waiting.ticket.attempt;
            let answer = Slip {
                assignment: Arc::clone(&self.assignment),
                ticket: Some(waiting.ticket),
            };
            waiting.decoded.deliver(attempt, answer)
        }))
    }

    fn trouble(&self) -> Option<String> {
        self.assignment.trouble()
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        self.assignment.close();
        // A runtime waits for its blocking tasks when it ends, and then perhaps the process does.
        if let (Ok(runtime), Some(left)) = (Handle::try_current(), self.left.take()) {
            runtime.spawn_blocking(move || left.recv_timeout(LEAVE_WITHIN));
        }
    }
}

/// How one message is answered.
struct Slip {
    assignment: Arc<Assignment>,
    /// `None` once it is answered.
    ticket: Option<Ticket>,
}

#[async_trait]
impl Acknowledge for Slip {
    /// The broker is told within 100 ms, and at the latest when the partition goes.
    async fn ack(mut self: Box<Self>) -> Result<(), BrokerError> {
        match self.ticket.take() {
            Some(ticket) if !self.assignment.finish(&ticket) => Err(BrokerError::new(
                "acknowledging",
                "the message's partition went to another member or back to an earlier message",
            )),
            _ => Ok(()),
        }
    }

    async fn nack(self: Box<Self>) -> Result<(), BrokerError> {
        Ok(())
    }
}

/// What is not acknowledged comes again.
impl Drop for Slip {
    fn drop(&mut self) {
        if let Some(ticket) = self.ticket.take() {
            self.assignment.give_back(&ticket);
        }
    }
}
