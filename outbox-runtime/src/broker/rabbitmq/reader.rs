use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures_util::future::FutureExt;
use futures_util::stream::{self, BoxStream, SelectAll, StreamExt};
use lapin::Acker;
use lapin::message;
use lapin::options::{BasicAckOptions, BasicConsumeOptions, BasicQosOptions};
use lapin::types::{FieldTable, ShortString};
use tokio::time::sleep;
use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::AbortOnDropHandle;
use tracing::debug;

use super::RabbitMqBroker;
use super::connection::{Established, OwnChannel};
use super::failure::Failure;
use super::incoming::{attempt, raw_message};
use super::topology::{Plan, PlannedQueue};
use crate::broker::cloud_events::{Binding, Decoder};
use crate::broker::{Acknowledge, BrokerError, Deliveries, Delivery, Subscription};

/// How often a reader sees to it that its queues and bindings are there. Nobody tells it when an
/// exchange is deleted, with which the bindings go.
const REBIND: Duration = Duration::from_secs(10);

/// Reads the queues of one subscription.
pub(super) struct Reader {
    // It is closed before its consumers go, so that RabbitMQ has back what is unacknowledged before
    // the next reader gets anything.
    channel: OwnChannel,
    incoming: SelectAll<BoxStream<'static, Incoming>>,
    queues: Vec<PlannedQueue>,
    decoder: Decoder,
    /// Cancelled when a message is not acknowledged for good: what comes after it must wait.
    given_back: CancellationToken,
    broker: RabbitMqBroker,
    established: Arc<Established>,
    group: String,
    _rebinding: Option<AbortOnDropHandle<()>>,
}

/// What came from the queue of that number; nothing when the server ended the consumer.
type Incoming = (usize, Option<lapin::Result<message::Delivery>>);

impl Reader {
    /// Begins to read, after all queues of the group were made.
    pub(super) async fn open(
        broker: &RabbitMqBroker,
        subscription: &Subscription,
    ) -> Result<Self, Failure> {
        let plan = Plan::new(broker, subscription)?;
        let established = broker.consuming.get().await?;
        let channel = established.channel().await?;
        if broker.options.declare {
            declare_group(broker, subscription, &established).await?;
            plan.declare(&channel).await?;
        }
        let share = broker.options.prefetch / plan.queues.len().max(1);
        let prefetch = u16::try_from(share).unwrap_or(u16::MAX).max(1);
        channel
            .basic_qos(prefetch, BasicQosOptions::default())
            .await
            .map_err(Failure::from)?;
        // Made before its consumers, so that it goes in the right order also when this is given up.
        let mut reader = Self {
            channel,
            incoming: SelectAll::new(),
            queues: plan.queues.clone(),
            decoder: Decoder::new(Binding::AMQP, subscription, &broker.options.foreign),
            given_back: CancellationToken::new(),
            _rebinding: broker.options.declare.then(|| {
                let rebinding = rebind(Arc::clone(&established), plan);
                AbortOnDropHandle::new(tokio::spawn(rebinding))
            }),
            broker: broker.clone(),
            established,
            group: subscription.group.clone(),
        };
        for (number, queue) in reader.queues.iter().enumerate() {
            let messages = consume(&reader.channel, number, queue).await?;
            reader.incoming.push(messages);
        }
        Ok(reader)
    }

    /// The delivery of what came, unless nobody wants it.
    fn delivery(&self, mut came: message::Delivery, queue: &PlannedQueue) -> Option<Delivery> {
        let exchange = queue.exchange.as_str();
        let raw = raw_message(&mut came, exchange, queue.is_foreign);
        match self
            .decoder
            .decode(&raw, queue.is_foreign.then_some(exchange))
        {
            Some(decoded) => Some(decoded.deliver(
                attempt(&came),
                Slip {
                    acker: came.acker,
                    given_back: self.given_back.clone().drop_guard(),
                },
            )),
            None => {
                // The first poll sends it; where that fails, the message comes again.
                let _ = came.acker.ack(BasicAckOptions::default()).now_or_never();
                None
            }
        }
    }

    /// The server ended a consumer: its queue is gone, and others may be.
    fn queue_gone(&self, queue: &PlannedQueue) -> Failure {
        self.established.forget_declared(&self.group);
        if !queue.is_foreign {
            self.broker.made.note(&queue.exchange);
        }
        Failure::QueueGone(queue.name.to_string())
    }
}

#[async_trait]
impl Deliveries for Reader {
    async fn next(&mut self) -> Result<Option<Delivery>, BrokerError> {
        loop {
            let (number, came) = tokio::select! {
                biased;
                () = self.given_back.cancelled() => return Err(receiving(Failure::GivenBack)),
                Some(incoming) = self.incoming.next() => incoming,
            };
            let Some(queue) = self.queues.get(number) else {
                continue;
            };
            match came {
                // What came over a channel that is closed comes again. The reason comes behind it.
                Some(Ok(_)) if !self.channel.status().connected() => {}
                Some(Ok(came)) => {
                    if let Some(delivery) = self.delivery(came, queue) {
                        return Ok(Some(delivery));
                    }
                }
                Some(Err(error)) => return Err(receiving(error.into())),
                None if self.channel.status().connected() => {
                    return Err(receiving(self.queue_gone(queue)));
                }
                None => return Err(receiving(Failure::Closed)),
            }
        }
    }
}

fn receiving(failure: Failure) -> BrokerError {
    BrokerError::new("receiving", failure)
}

/// Makes the queues of all partitions, also of those that nobody reads at the moment: what is
/// published meanwhile has to go somewhere. It is done once a connection.
async fn declare_group(
    broker: &RabbitMqBroker,
    subscription: &Subscription,
    established: &Established,
) -> Result<(), Failure> {
    let _turn = established.declaring.lock().await;
    let event_types = &subscription.event_types;
    if !established.is_declared(&subscription.group, event_types) {
        let all = Plan::of_all_partitions(broker, subscription)?;
        all.declare(&*established.channel().await?).await?;
        established.note_declared(&subscription.group, event_types);
    }
    Ok(())
}

async fn consume(
    channel: &OwnChannel,
    number: usize,
    queue: &PlannedQueue,
) -> Result<BoxStream<'static, Incoming>, Failure> {
    let consumer = channel.basic_consume(
        queue.name.clone(),
        ShortString::default(),
        BasicConsumeOptions::default(),
        FieldTable::default(),
    );
    let consumer = consumer.await.map_err(|error| match Failure::from(error) {
        failure if failure.is_missing() => Failure::Missing {
            what: format!(
                "queue {} bound to the exchange {}",
                queue.name, queue.exchange
            ),
            remedy: "make both, with their bindings, or let them be declared",
        },
        other => other,
    })?;
    let messages = consumer.map(move |message| (number, Some(message)));
    let ended = stream::once(async move { (number, None) });
    Ok(messages.chain(ended).boxed())
}

async fn rebind(established: Arc<Established>, plan: Plan) {
    loop {
        sleep(REBIND).await;
        let rebound = async {
            let channel = established.channel().await?;
            plan.declare(&channel).await
        };
        if let Err(error) = rebound.await {
            debug!(%error, "queues and bindings can't be looked after at the moment");
        }
    }
}

/// Tells RabbitMQ of one message.
struct Slip {
    acker: Acker,
    /// Ends the subscription unless it is disarmed.
    given_back: DropGuard,
}

#[async_trait]
impl Acknowledge for Slip {
    async fn ack(self: Box<Self>) -> Result<(), BrokerError> {
        let acknowledged = match self.acker.ack(BasicAckOptions::default()).await {
            Ok(true) => Ok(()),
            Ok(false) => Err(Failure::Closed),
            Err(error) => Err(error.into()),
        };
        acknowledged.map_err(|failure| BrokerError::new("acknowledging", failure))?;
        self.given_back.disarm();
        Ok(())
    }

    /// The guard does it: the channel is closed, and everything that is unacknowledged comes again.
    async fn nack(self: Box<Self>) -> Result<(), BrokerError> {
        Ok(())
    }
}
