use std::collections::BTreeSet;
use std::ops::RangeInclusive;

use futures_util::future::try_join_all;
use lapin::options::{ExchangeDeclareOptions, QueueBindOptions, QueueDeclareOptions};
use lapin::types::{AMQPValue, FieldTable, ShortString};
use lapin::{Channel, ExchangeKind};

use super::failure::{Failure, short};
use super::names::{foreign_queue, queue, routing_key};
use super::{QueueType, RabbitMqBroker};
use crate::broker::Subscription;
use crate::broker::partition::partition_of_foreign;

/// All that a subscription reads, for some partitions.
pub(super) struct Plan {
    /// Those of our own topics.
    pub(super) queues: Vec<PlannedQueue>,
    /// Those of foreign topics.
    pub(super) foreign: Vec<PlannedQueue>,
    arguments: FieldTable,
}

/// A queue and how it gets its messages.
#[derive(Clone)]
pub(super) struct PlannedQueue {
    pub(super) name: ShortString,
    pub(super) exchange: ShortString,
    keys: Vec<ShortString>,
    pub(super) is_foreign: bool,
}

impl Plan {
    /// What is read of the subscription's partition, or of all; foreign topics by the reader of one.
    pub(super) fn new(
        broker: &RabbitMqBroker,
        subscription: &Subscription,
    ) -> Result<Self, Failure> {
        let (options, group) = (&broker.options, &subscription.group);
        let Some(partition) = subscription.partition else {
            let mut plan = Self::of_all_partitions(broker, subscription)?;
            plan.add_foreign(broker, group, |_| true)?;
            return Ok(plan);
        };
        if partition >= options.partitions.get() {
            return Err(Failure::NoPartition(partition));
        }
        let mut plan = Self::of_partitions(broker, subscription, partition..=partition)?;
        plan.add_foreign(broker, group, |topic| {
            partition_of_foreign(topic, options.partitions) == partition
        })?;
        Ok(plan)
    }

    /// All partitions of our own topics.
    pub(super) fn of_all_partitions(
        broker: &RabbitMqBroker,
        subscription: &Subscription,
    ) -> Result<Self, Failure> {
        let last = broker.options.partitions.get() - 1;
        Self::of_partitions(broker, subscription, 0..=last)
    }

    fn of_partitions(
        broker: &RabbitMqBroker,
        subscription: &Subscription,
        partitions: RangeInclusive<u16>,
    ) -> Result<Self, Failure> {
        let topics = &broker.options.topics;
        let mut queues = Vec::new();
        for topic in topics.of_all(&subscription.event_types) {
            let exchange = short(&topics.full_name(topic, '.'))?;
            for partition in partitions.clone() {
                let event_types = subscription.event_types.iter();
                let keys = event_types
                    .filter(|event_type| topics.of(event_type) == topic)
                    .map(|event_type| routing_key(partition, event_type));
                queues.push(PlannedQueue {
                    name: queue(exchange.as_str(), &subscription.group, partition)?,
                    exchange: exchange.clone(),
                    keys: keys.collect::<Result<_, _>>()?,
                    is_foreign: false,
                });
            }
        }
        Ok(Self {
            queues,
            foreign: Vec::new(),
            arguments: arguments(broker.queue_type),
        })
    }

    fn add_foreign(
        &mut self,
        broker: &RabbitMqBroker,
        group: &str,
        is_read: impl Fn(&str) -> bool,
    ) -> Result<(), Failure> {
        let options = &broker.options;
        for topic in options.foreign.iter().filter(|topic| is_read(&topic.name)) {
            self.foreign.push(PlannedQueue {
                name: foreign_queue(options.topics.namespace(), &topic.name, group)?,
                exchange: short(&topic.name)?,
                keys: vec!["#".into()],
                is_foreign: true,
            });
        }
        Ok(())
    }

    /// Makes what is missing of our exchanges, queues and bindings. The channel is of no use any more
    /// after an error.
    ///
    /// Queues come first and bindings close together, so that an exchange stands for as short a time
    /// as possible with some of its queues bound.
    pub(super) async fn declare(&self, channel: &Channel) -> Result<(), Failure> {
        let queues = self.queues.iter();
        try_join_all(queues.map(|queue| self.declare_queue(channel, queue))).await?;
        for exchange in self.exchanges() {
            declare_exchange(channel, exchange).await?;
        }
        let queues = self.queues.iter();
        try_join_all(queues.map(|queue| queue.bind(channel))).await?;
        Ok(())
    }

    /// Makes the queue of a foreign topic, and binds it. The exchange is not ours to make.
    pub(super) async fn declare_foreign(
        &self,
        channel: &Channel,
        queue: &PlannedQueue,
    ) -> Result<(), Failure> {
        match look_for_exchange(channel, &queue.exchange).await {
            Err(failure) if failure.is_missing() => {
                return Err(Failure::Missing {
                    what: format!("exchange {}", queue.exchange),
                    remedy: "it is a foreign topic, so its owner has to make it",
                });
            }
            other => other?,
        }
        self.declare_queue(channel, queue).await?;
        queue.bind(channel).await
    }

    /// Whether one of our exchanges is gone, with which all bindings behind it go.
    pub(super) async fn misses_exchange(&self, channel: &Channel) -> Result<bool, Failure> {
        for exchange in self.exchanges() {
            match look_for_exchange(channel, exchange).await {
                Err(failure) if failure.is_missing() => return Ok(true),
                other => other?,
            }
        }
        Ok(false)
    }

    fn exchanges(&self) -> BTreeSet<&ShortString> {
        self.queues.iter().map(|queue| &queue.exchange).collect()
    }

    async fn declare_queue(&self, channel: &Channel, queue: &PlannedQueue) -> Result<(), Failure> {
        let options = QueueDeclareOptions {
            durable: true,
            ..QueueDeclareOptions::default()
        };
        let declared = channel.queue_declare(queue.name.clone(), options, self.arguments.clone());
        let declared = declared.await.map(drop).map_err(Failure::from);
        declared.map_err(|failure| unlike(failure, "queue", &queue.name))
    }
}

impl PlannedQueue {
    /// Sees whether it is there. It is told with its exchange, to which it has to be bound.
    pub(super) async fn look_for(&self, channel: &Channel) -> Result<(), Failure> {
        let options = QueueDeclareOptions {
            passive: true,
            ..QueueDeclareOptions::default()
        };
        let found = channel.queue_declare(self.name.clone(), options, FieldTable::default());
        match found.await.map_err(Failure::from) {
            Err(failure) => Err(self.missing(failure)),
            Ok(_) => Ok(()),
        }
    }

    /// What it means that this queue was not found.
    pub(super) fn missing(&self, failure: Failure) -> Failure {
        if !failure.is_missing() {
            return failure;
        }
        Failure::Missing {
            what: format!(
                "queue {} bound to the exchange {}",
                self.name, self.exchange
            ),
            remedy: "make both, with their bindings, or let them be declared",
        }
    }

    async fn bind(&self, channel: &Channel) -> Result<(), Failure> {
        let bindings = self.keys.iter().map(|key| {
            channel.queue_bind(
                self.name.clone(),
                self.exchange.clone(),
                key.clone(),
                QueueBindOptions::default(),
                FieldTable::default(),
            )
        });
        try_join_all(bindings).await?;
        Ok(())
    }
}

/// Makes one of our exchanges, if it is missing.
pub(super) async fn declare_exchange(
    channel: &Channel,
    exchange: &ShortString,
) -> Result<(), Failure> {
    let options = ExchangeDeclareOptions {
        durable: true,
        ..ExchangeDeclareOptions::default()
    };
    let arguments = FieldTable::default();
    let declared =
        channel.exchange_declare(exchange.clone(), ExchangeKind::Topic, options, arguments);
    let declared = declared.await.map_err(Failure::from);
    declared.map_err(|failure| unlike(failure, "exchange", exchange))
}

async fn look_for_exchange(channel: &Channel, exchange: &ShortString) -> Result<(), Failure> {
    let options = ExchangeDeclareOptions {
        passive: true,
        ..ExchangeDeclareOptions::default()
    };
    let arguments = FieldTable::default();
    let found = channel.exchange_declare(exchange.clone(), ExchangeKind::Topic, options, arguments);
    Ok(found.await?)
}

/// What a queue is, so that two readers never share it: the second one waits until the first one's
/// channel is gone.
fn arguments(queue_type: QueueType) -> FieldTable {
    let mut arguments = FieldTable::default();
    arguments.insert("x-single-active-consumer".into(), AMQPValue::Boolean(true));
    let name = match queue_type {
        QueueType::Classic => "classic",
        QueueType::Quorum => {
            // From RabbitMQ 4 on, a quorum queue drops a message that came 20 times.
            arguments.insert("x-delivery-limit".into(), AMQPValue::LongInt(i32::MAX));
            "quorum"
        }
    };
    arguments.insert("x-queue-type".into(), AMQPValue::LongString(name.into()));
    arguments
}

fn unlike(failure: Failure, what: &str, name: &ShortString) -> Failure {
    match failure {
        Failure::Client(answer) if Failure::Client(answer.clone()).is_precondition() => {
            Failure::Unlike {
                what: format!("the {what} {name}"),
                answer: answer.to_string(),
            }
        }
        other => other,
    }
}
