use std::collections::HashSet;
use std::fmt;
use std::future::Future;
use std::pin::pin;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::{info, warn};

use super::counters::{ConsumerCounts, Counters};
use super::dispatch::{Dispatcher, Outcome};
use super::failure::with_causes;
use super::handlers::{Handlers, Selection};
use super::lanes::{Job, Lanes, OpenLane, Taken};
use super::options::ConsumerOptions;
use super::transact::Transactor;
use crate::broker::{Acknowledge, Deliveries, Delivery, Subscriber, Subscription};
use crate::handler::States;
use crate::health::HealthHandle;
use crate::problem::{self, Problem};
use crate::store::Backend;
use crate::unit_of_work::Outbox;

const DEFAULT_DEADLINE: Duration = Duration::from_secs(30);
/// How long tasks that were cancelled get to notice it.
const CANCELLED_WAIT: Duration = Duration::from_secs(1);

/// Takes messages from a broker and gives each its effect once per consumer.
///
/// It finds the handlers that are linked into the program, subscribes under the outbox's service
/// name to the events that they take, and handles messages of one aggregate one after another and
/// of different aggregates side by side. A message is acknowledged when all its consumers have
/// committed. Whatever fails is rolled back and tried again in place, with a growing wait, while
/// other aggregates go on; permanent failures too, at the longest wait and with degraded health,
/// until dead letters exist.
///
/// [`App`](crate::app::App) runs one; use it by itself to run consumers without a relay.
///
/// ```no_run
/// # use outbox_runtime::prelude::*;
/// # use outbox_runtime::{broker::InProcessBroker, inbox::Consumer};
/// # #[cfg(feature = "sqlite")]
/// # async fn example(outbox: Outbox<sqlx::Sqlite>, broker: InProcessBroker) -> Result<(), Box<dyn std::error::Error>> {
/// let consumer = Consumer::new(outbox, broker);
/// consumer.run_until(async { let _ = tokio::signal::ctrl_c().await; }).await?;
/// println!("{:?}", consumer.counts());
/// # Ok(())
/// # }
/// ```
pub struct Consumer<DB: Backend> {
    outbox: Outbox<DB>,
    subscriber: Arc<dyn Subscriber>,
    states: Arc<States>,
    selection: Selection,
    options: ConsumerOptions,
    deadline: Duration,
    counters: Counters,
    health: HealthHandle,
    subscribed: watch::Sender<bool>,
}

/// A consumer could not start, or not end in time.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConsumerError {
    /// The program's handlers do not fit together.
    #[error("{}", problem::list(.0))]
    Startup(Vec<Problem>),
    /// Handlers were still running at the shutdown deadline. Their messages are delivered again.
    #[error(
        "{unfinished} message(s) were still being handled {deadline:?} after the shutdown signal; \
         they were given back to the broker"
    )]
    Deadline {
        /// How long was waited.
        deadline: Duration,
        /// How many ordering keys had a message in work.
        unfinished: usize,
    },
}

impl<DB: Backend> Consumer<DB> {
    /// A consumer of all handlers in the program, with default options.
    pub fn new(outbox: Outbox<DB>, subscriber: impl Subscriber + 'static) -> Self {
        Self {
            outbox,
            subscriber: Arc::new(subscriber),
            states: Arc::default(),
            selection: Selection::all(),
            options: ConsumerOptions::default(),
            deadline: DEFAULT_DEADLINE,
            counters: Counters::default(),
            health: HealthHandle::default(),
            subscribed: watch::Sender::new(false),
        }
    }

    /// Sets the states that handlers extract.
    #[must_use]
    pub fn states(mut self, states: States) -> Self {
        self.states = Arc::new(states);
        self
    }

    /// Takes only the handlers of consumers whose name `wanted` accepts.
    #[must_use]
    pub fn select_consumers(
        mut self,
        wanted: impl Fn(&str) -> bool + Send + Sync + 'static,
    ) -> Self {
        self.selection = Selection::of(wanted);
        self
    }

    /// Sets the options.
    #[must_use]
    pub fn options(mut self, options: ConsumerOptions) -> Self {
        self.options = options;
        self
    }

    /// Sets how long handlers may go on after the shutdown signal (30 s unless told).
    #[must_use]
    pub fn shutdown_deadline(mut self, deadline: Duration) -> Self {
        self.deadline = deadline;
        self
    }

    /// Reports to a health that other parts report to as well.
    #[must_use]
    pub fn report_to(mut self, health: HealthHandle) -> Self {
        self.health = health;
        self
    }

    /// What it has done so far.
    pub fn counts(&self) -> ConsumerCounts {
        self.counters.counts()
    }

    /// Its health.
    pub fn health(&self) -> HealthHandle {
        self.health.clone()
    }

    /// Consumes until `shutdown` resolves, then finishes the messages that are being handled and
    /// gives the rest back.
    ///
    /// A broker that is down, at the start or later, degrades the health and is tried again.
    ///
    /// # Errors
    /// [`ConsumerError::Startup`] when the handlers do not fit together,
    /// [`ConsumerError::Deadline`] when handlers did not end in time.
    ///
    /// # Cancel safety
    /// Dropping the call cancels what is being handled: it is rolled back and delivered again.
    pub async fn run_until(
        &self,
        shutdown: impl Future<Output = ()> + Send,
    ) -> Result<(), ConsumerError> {
        let stop = CancellationToken::new();
        let mut run = pin!(self.run(stop.clone()));
        tokio::select! {
            result = &mut run => return result,
            () = shutdown => stop.cancel(),
        }
        run.await
    }

    /// Like [`run_until`](Self::run_until), with a token.
    pub(crate) async fn run(&self, stop: CancellationToken) -> Result<(), ConsumerError> {
        let handlers = Handlers::<DB>::collect(&self.selection, &self.states)
            .map_err(ConsumerError::Startup)?;
        if handlers.is_empty() {
            info!("no handler in this program; the consumer has nothing to do");
            self.subscribed.send_replace(true);
            stop.cancelled().await;
            return Ok(());
        }
        let subscription = Subscription::new(self.outbox.service(), handlers.event_types());
        let crew = Crew::new(self, handlers, stop.clone());
        let mut failures = 0;
        while !stop.is_cancelled() {
            let mut open = None;
            let reason = self
                .session(&crew, &subscription, &mut open, &mut failures)
                .await;
            let Some(reason) = reason else {
                // What is in work is acknowledged over the subscription that is still open.
                return crew.finish(self.deadline).await;
            };
            failures += 1;
            warn!(reason, failures, "no subscription; trying again");
            self.health.degrade(SUBSCRIPTION, reason);
            let wait = tokio::time::sleep(self.options.backoff.delay(failures));
            stop.run_until_cancelled(wait).await;
        }
        crew.finish(self.deadline).await
    }

    /// Subscribes and takes messages until the consumer stops (`None`) or the subscription breaks.
    async fn session(
        &self,
        crew: &Crew<DB>,
        subscription: &Subscription,
        open: &mut Option<Box<dyn Deliveries>>,
        failures: &mut u32,
    ) -> Option<String> {
        let stop = &crew.dispatcher.stop;
        let subscribing = self.subscriber.subscribe(subscription.clone());
        let deliveries = match stop.run_until_cancelled(subscribing).await? {
            Ok(deliveries) => open.insert(deliveries),
            Err(error) => return Some(with_causes(&error)),
        };
        self.health.recover(SUBSCRIPTION);
        self.subscribed.send_replace(true);
        loop {
            let place = Arc::clone(&crew.places).acquire_owned();
            let place = stop.run_until_cancelled(place).await?.ok()?;
            match stop.run_until_cancelled(deliveries.next()).await? {
                Ok(Some(delivery)) => {
                    *failures = 0;
                    crew.take(delivery, place);
                }
                Ok(None) => return Some("the broker ended the subscription".to_owned()),
                Err(error) => return Some(with_causes(&error)),
            }
        }
    }

    /// Resolves once the group is known to the broker, so that nothing published is missed.
    pub(crate) fn subscribed(&self) -> watch::Receiver<bool> {
        self.subscribed.subscribe()
    }
}

impl<DB: Backend> fmt::Debug for Consumer<DB> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Consumer")
            .field("outbox", &self.outbox)
            .field("options", &self.options)
            .finish_non_exhaustive()
    }
}

/// The part of the health that is about the subscription.
const SUBSCRIPTION: &str = "subscription";

/// The tasks of one run.
struct Crew<DB: Backend> {
    dispatcher: Arc<Dispatcher<DB>>,
    lanes: Arc<Lanes>,
    places: Arc<Semaphore>,
    tasks: TaskTracker,
    /// Cancels the tasks, also when the run itself is dropped.
    abort: tokio_util::sync::DropGuard,
}

impl<DB: Backend> Crew<DB> {
    fn new(consumer: &Consumer<DB>, handlers: Handlers<DB>, stop: CancellationToken) -> Self {
        let options = consumer.options.clone();
        Self {
            lanes: Arc::default(),
            places: Arc::new(Semaphore::new(options.prefetch)),
            tasks: TaskTracker::new(),
            abort: CancellationToken::new().drop_guard(),
            dispatcher: Arc::new(Dispatcher {
                handlers,
                transactor: Transactor::new(consumer.outbox.clone(), Arc::clone(&consumer.states)),
                running: Semaphore::new(options.concurrency),
                options,
                counters: consumer.counters.clone(),
                health: consumer.health.clone(),
                stop,
                unhandled_seen: Mutex::new(HashSet::new()),
            }),
        }
    }

    fn take(&self, delivery: Delivery, place: OwnedSemaphorePermit) {
        let takers = self.dispatcher.takers(&delivery.message.metadata);
        match self.lanes.take(delivery, place) {
            Taken::First(job, lane) => {
                let abort = self.abort.token().clone();
                let work = work(Arc::clone(&self.dispatcher), job, lane);
                self.tasks
                    .spawn(async move { abort.run_until_cancelled_owned(work).await });
            }
            Taken::Joined => self.dispatcher.counters.duplicates(takers),
            Taken::Waiting => {}
        }
    }

    /// Waits until the messages in work are done, and cancels them at the deadline.
    async fn finish(self, deadline: Duration) -> Result<(), ConsumerError> {
        self.tasks.close();
        if tokio::time::timeout(deadline, self.tasks.wait())
            .await
            .is_ok()
        {
            return Ok(());
        }
        let unfinished = self.tasks.len();
        self.abort.token().cancel();
        let _ = tokio::time::timeout(CANCELLED_WAIT, self.tasks.wait()).await;
        Err(ConsumerError::Deadline {
            deadline,
            unfinished,
        })
    }
}

/// Handles the messages of one lane one after another, until none waits or the consumer stops.
async fn work<DB: Backend>(dispatcher: Arc<Dispatcher<DB>>, first: Job, mut lane: OpenLane) {
    let mut job = first;
    loop {
        let (message, answers, place) = job.into_parts();
        if dispatcher.handle(&message).await == Outcome::Stopped {
            return;
        }
        acknowledge(answers).await;
        drop(place);
        let (joined, next) = lane.advance();
        acknowledge(joined).await;
        match next {
            Some(next) => job = next,
            None => return,
        }
    }
}

async fn acknowledge(answers: Vec<Box<dyn Acknowledge>>) {
    for answer in answers {
        if let Err(error) = answer.ack().await {
            warn!(
                reason = with_causes(&error),
                "the broker was not told of a handled message; the inbox absorbs its redelivery"
            );
        }
    }
}
