use std::time::Duration;

use async_trait::async_trait;
use tokio::sync::watch;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tokio_util::task::task_tracker::TaskTrackerToken;
use tracing::warn;

use super::consumer::SUBSCRIPTION;
use super::crew::Crew;
use crate::backoff::Backoff;
use crate::broker::{Acknowledge, BrokerError, Deliveries, Delivery, Subscriber, Subscription};
use crate::error_text;
use crate::health::{HealthHandle, Milestone};
use crate::store::Backend;

/// How often to ask a subscription that brings nothing whether it can.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Takes the messages of one subscription to the crew, and subscribes anew when that breaks.
pub(super) struct Intake<'a, DB: Backend> {
    pub(super) subscriber: &'a dyn Subscriber,
    pub(super) crew: &'a Crew<DB>,
    pub(super) health: &'a HealthHandle,
    pub(super) backoff: Backoff,
    pub(super) broker_timeout: Duration,
    /// Told of the first success.
    pub(super) subscribed: &'a watch::Sender<bool>,
}

/// One subscription.
pub(super) struct Source {
    pub(super) subscription: Subscription,
    /// The part of the health that speaks of it.
    pub(super) part: String,
    /// Ends it.
    pub(super) stop: CancellationToken,
    /// Counts its messages until each is answered, where somebody waits for that.
    pub(super) in_work: Option<TaskTracker>,
}

impl<DB: Backend> Intake<'_, DB> {
    /// Takes messages until the source is stopped. What is in work then is acknowledged over the
    /// subscription that is returned, so it has to stay open.
    pub(super) async fn run(&self, source: &Source) -> Option<Box<dyn Deliveries>> {
        let mut failures = 0;
        while !source.stop.is_cancelled() {
            let mut open = None;
            let Some(reason) = self.session(source, &mut open, &mut failures).await else {
                self.health.recover(&source.part);
                return open;
            };
            failures += 1;
            warn!(reason, failures, "no subscription; trying again");
            self.health.degrade(&source.part, reason);
            // The service takes writes without its broker.
            self.health.make_ready(SUBSCRIPTION);
            let wait = sleep(self.backoff.delay(failures));
            source.stop.run_until_cancelled(wait).await;
        }
        self.health.recover(&source.part);
        None
    }

    /// Subscribes and takes messages until the source is stopped (`None`) or the subscription
    /// breaks.
    async fn session(
        &self,
        source: &Source,
        open: &mut Option<Box<dyn Deliveries>>,
        failures: &mut u32,
    ) -> Option<String> {
        let stop = &source.stop;
        let subscribing = self.subscriber.subscribe(source.subscription.clone());
        let subscribing = timeout(self.broker_timeout, subscribing);
        let deliveries = match stop.run_until_cancelled(subscribing).await? {
            Ok(Ok(deliveries)) => open.insert(deliveries),
            Ok(Err(error)) => return Some(error_text::of_error(&error)),
            Err(_) => {
                let limit = self.broker_timeout;
                return Some(format!(
                    "the broker did not answer a subscription in {limit:?}"
                ));
            }
        };
        self.health.recover(&source.part);
        self.subscribed.send_replace(true);
        self.health.reach(Milestone::Subscribed);
        self.health.make_ready(SUBSCRIPTION);
        loop {
            let taken = match &source.in_work {
                None => {
                    let place = stop.run_until_cancelled(self.crew.places.one()).await??;
                    let next = self.next(source, deliveries);
                    let taken = stop.run_until_cancelled(next).await?;
                    taken.map(|delivery| delivery.map(|delivery| (delivery, place)))
                }
                // Many partitions that are quiet must not keep the places of those that are not.
                Some(in_work) => match stop
                    .run_until_cancelled(self.next(source, deliveries))
                    .await?
                {
                    Ok(Some(delivery)) => {
                        let place = stop.run_until_cancelled(self.crew.places.one()).await??;
                        Ok(Some((counted(delivery, in_work), place)))
                    }
                    Ok(None) => Ok(None),
                    Err(error) => Err(error),
                },
            };
            match taken {
                Ok(Some((delivery, place))) => {
                    *failures = 0;
                    let room = self.crew.places.room_for(place, &delivery.message);
                    let place = stop.run_until_cancelled(room).await??;
                    self.crew.take(delivery, place);
                }
                Ok(None) => return Some("the broker ended the subscription".to_owned()),
                Err(error) => return Some(error_text::of_error(&error)),
            }
        }
    }
}

impl<DB: Backend> Intake<'_, DB> {
    /// The next delivery, with a look now and then at what keeps it from coming.
    async fn next(
        &self,
        source: &Source,
        deliveries: &mut Box<dyn Deliveries>,
    ) -> Result<Option<Delivery>, BrokerError> {
        let mut is_told = false;
        loop {
            tokio::select! {
                biased;
                next = deliveries.next() => {
                    if is_told {
                        self.health.recover(&source.part);
                    }
                    return next;
                }
                () = sleep(LOOK_EVERY) => match deliveries.trouble() {
                    Some(trouble) => {
                        self.health.degrade(&source.part, trouble);
                        is_told = true;
                    }
                    None if is_told => {
                        self.health.recover(&source.part);
                        is_told = false;
                    }
                    None => {}
                },
            }
        }
    }
}

/// A delivery that counts as in work until it is answered or dropped.
fn counted(delivery: Delivery, in_work: &TaskTracker) -> Delivery {
    delivery.map_answer(|answer| Counted {
        answer,
        _in_work: in_work.token(),
    })
}

struct Counted {
    answer: Box<dyn Acknowledge>,
    _in_work: TaskTrackerToken,
}

#[async_trait]
impl Acknowledge for Counted {
    async fn ack(self: Box<Self>) -> Result<(), BrokerError> {
        self.answer.ack().await
    }

    async fn nack(self: Box<Self>) -> Result<(), BrokerError> {
        self.answer.nack().await
    }
}
