use std::sync::Arc;

use async_trait::async_trait;
use futures_util::future::FutureExt;
use futures_util::stream::{self, BoxStream, SelectAll, StreamExt};
use lapin::options::{BasicAckOptions, BasicConsumeOptions, BasicQosOptions};
use lapin::types::{FieldTable, ShortString};
use lapin::{Acker, Channel, message};
use tokio::sync::mpsc;
use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::AbortOnDropHandle;

use super::RabbitMqBroker;
use super::connection::{Established, OwnChannel};
use super::failure::Failure;
use super::incoming::{attempt, raw_message};
use super::topology::{Plan, PlannedQueue};
use super::upkeep::Upkeep;
use crate::broker::cloud_events::{Binding, Decoder};
use crate::broker::{Acknowledge, BrokerError, Deliveries, Delivery, Subscription};

/// Reads the queues of one subscription.
pub(super) struct Reader {
    // It is closed before its consumers go, so that RabbitMQ has back what is unacknowledged before
    // the next reader gets anything.
    channel: OwnChannel,
    incoming: SelectAll<Messages>,
    /// What joins it later: foreign topics, as soon as they are there. It ends with the channel.
    joining: mpsc::Receiver<Messages>,
    queues: Vec<PlannedQueue>,
    decoder: Decoder,
    /// Cancelled when a message is not acknowledged for good: what comes after it must wait.
    given_back: CancellationToken,
    established: Arc<Established>,
    group: String,
    upkeep: Option<AbortOnDropHandle<()>>,
}

/// What came from the queue of that number; nothing when the server ended the consumer.
pub(super) type Incoming = (usize, Option<lapin::Result<message::Delivery>>);

/// What comes from one queue.
pub(super) type Messages = BoxStream<'static, Incoming>;

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
        let queues: Vec<_> = plan.queues.iter().chain(&plan.foreign).cloned().collect();
        let share = broker.options.prefetch / queues.len().max(1);
        let prefetch = u16::try_from(share).unwrap_or(u16::MAX).max(1);
        channel
            .basic_qos(prefetch, BasicQosOptions::default())
            .await
            .map_err(Failure::from)?;
        let (joins, joining) = mpsc::channel(queues.len().max(1));
        let (own, connected) = (plan.queues.len(), Arc::clone(&established));
        let subscription = subscription.clone();
        let mut upkeep = Upkeep::new(broker, subscription, plan, connected, &channel, joins);
        // Made before its consumers, so that it goes in the right order also when this is given up.
        let mut reader = Self {
            channel,
            incoming: SelectAll::new(),
            joining,
            decoder: Decoder::new(
                Binding::AMQP,
                upkeep.subscription(),
                &broker.options.foreign,
            ),
            queues,
            given_back: CancellationToken::new(),
            established,
            group: upkeep.subscription().group.clone(),
            upkeep: None,
        };
        for (number, queue) in reader.queues.iter().enumerate().take(own) {
            let messages = consume(&reader.channel, number, queue).await?;
            reader.incoming.push(messages);
        }
        upkeep.see_to_foreign().await;
        let upkeep = AbortOnDropHandle::new(tokio::spawn(upkeep.run()));
        reader.upkeep = Some(upkeep);
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
                messages = self.joining.recv() => match messages {
                    Some(messages) => {
                        self.incoming.push(messages);
                        continue;
                    }
                    None => return Err(receiving(Failure::Closed)),
                },
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

/// Has the server hand out what is in the queue of that number.
pub(super) async fn consume(
    channel: &Channel,
    number: usize,
    queue: &PlannedQueue,
) -> Result<Messages, Failure> {
    let consumer = channel.basic_consume(
        queue.name.clone(),
        ShortString::default(),
        BasicConsumeOptions::default(),
        FieldTable::default(),
    );
    let consumer = consumer.await;
    let consumer = consumer.map_err(|error| queue.missing(error.into()))?;
    let messages = consumer.map(move |message| (number, Some(message)));
    let ended = stream::once(async move { (number, None) });
    Ok(messages.chain(ended).boxed())
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
