use std::sync::Arc;
use std::time::Duration;

use lapin::Channel;
use tokio::sync::mpsc;
use tokio::time::sleep;
use tracing::{debug, info, warn};

use super::RabbitMqBroker;
use super::connection::Established;
use super::failure::Failure;
use super::reader::{Messages, consume};
use super::topology::{Plan, PlannedQueue};
use crate::broker::Subscription;

/// How often a reader sees to it that its queues and bindings are there. Nobody tells it when an
/// exchange is deleted, with which the bindings go, or made.
const EVERY: Duration = Duration::from_secs(10);

/// Sees to what a reader reads, for as long as its channel is open.
pub(super) struct Upkeep {
    broker: RabbitMqBroker,
    subscription: Subscription,
    plan: Plan,
    established: Arc<Established>,
    /// The reader's.
    channel: Channel,
    foreign: Vec<Foreign>,
    joins: mpsc::Sender<Messages>,
}

/// The queue of a foreign topic.
struct Foreign {
    number: usize,
    queue: PlannedQueue,
    /// Whether the reader has its messages.
    is_read: bool,
}

impl Upkeep {
    /// `joins` takes the messages of each foreign topic once. They are numbered after our own.
    pub(super) fn new(
        broker: &RabbitMqBroker,
        subscription: Subscription,
        plan: Plan,
        established: Arc<Established>,
        channel: &Channel,
        joins: mpsc::Sender<Messages>,
    ) -> Self {
        let foreign = plan.foreign.iter().zip(plan.queues.len()..);
        let foreign = foreign.map(|(queue, number)| Foreign {
            number,
            queue: queue.clone(),
            is_read: false,
        });
        Self {
            broker: broker.clone(),
            subscription,
            foreign: foreign.collect(),
            plan,
            established,
            channel: channel.clone(),
            joins,
        }
    }

    pub(super) fn subscription(&self) -> &Subscription {
        &self.subscription
    }

    /// Goes on until the channel is closed.
    pub(super) async fn run(mut self) {
        loop {
            sleep(EVERY).await;
            if !self.channel.status().connected() {
                return;
            }
            if self.broker.options.declare
                && let Err(error) = self.restore().await
            {
                debug!(%error, "queues and bindings can't be looked after at the moment");
            }
            self.see_to_foreign().await;
        }
    }

    /// Makes our own exchanges, queues and bindings again.
    ///
    /// A reader sees to its own partition. But an exchange takes the bindings of all with it when it
    /// goes, and what is bound behind a new one too late loses what other groups get meanwhile, so
    /// who misses it binds all of the group's.
    async fn restore(&self) -> Result<(), Failure> {
        let _turn = self.established.declaring.lock().await;
        let channel = self.established.channel().await?;
        if !self.plan.misses_exchange(&channel).await? {
            return self.plan.declare(&channel).await;
        }
        let all = Plan::of_all_partitions(&self.broker, &self.subscription)?;
        all.declare(&*self.established.channel().await?).await?;
        let group = &self.subscription.group;
        warn!(
            group,
            "an exchange was gone, with all bindings; it was made again"
        );
        Ok(())
    }

    /// Makes the queues of foreign topics and begins to read them. Those that it can't be done for
    /// don't stop the others, nor our own.
    pub(super) async fn see_to_foreign(&mut self) {
        for foreign in &mut self.foreign {
            let queue = &foreign.queue;
            let prepared = async {
                let channel = self.established.channel().await?;
                match self.broker.options.declare {
                    true => self.plan.declare_foreign(&channel, queue).await,
                    false => queue.look_for(&channel).await,
                }
            };
            let exchange = queue.exchange.as_str();
            match prepared.await {
                Ok(()) if self.established.note_readable(&queue.name) => {
                    info!(exchange, "the foreign topic is there now");
                }
                Ok(()) => {}
                // Then nothing can be said of the topic, and the reader ends by itself.
                Err(_) if !self.channel.status().connected() => return,
                Err(error) => {
                    if self.established.note_unreadable(&queue.name) {
                        warn!(exchange, %error, again_every = ?EVERY, "a foreign topic is not read");
                    } else {
                        debug!(exchange, %error, "the foreign topic is still not read");
                    }
                    continue;
                }
            }
            if foreign.is_read {
                continue;
            }
            match consume(&self.channel, foreign.number, queue).await {
                Ok(messages) => {
                    foreign.is_read = true;
                    // There is room for each; without the reader nobody wants it.
                    let _ = self.joins.try_send(messages);
                }
                // It closes the channel, so the reader begins anew.
                Err(error) => debug!(exchange, %error, "the foreign topic can't be read"),
            }
        }
    }
}
