use std::fmt;
use std::future::Future;
use std::pin::pin;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use tokio::sync::{Notify, mpsc, watch};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::info;

use super::counters::{ConsumerCounts, Counters};
use super::crew::Crew;
use super::dispatch::Dispatcher;
use super::handlers::{Handlers, Selection};
use super::intake::{Intake, Source};
use super::options::ConsumerOptions;
use super::parking::Parking;
use super::partitions::{Held, Leases};
use super::spare::Spare;
use super::transact::Transactor;
use super::turns::Turns;
use crate::broker::{Sharing, Subscriber, Subscription};
use crate::handler::States;
use crate::health::{HealthHandle, Milestone};
use crate::problem::{self, Problem};
use crate::store::Backend;
use crate::unit_of_work::Outbox;

/// The part of the health that is about the subscription.
pub(crate) const SUBSCRIPTION: &str = "subscription";

/// Takes messages from a broker and gives each its effect once per consumer.
///
/// It finds the handlers that are linked into the program, subscribes under the outbox's service
/// name to the events that they take, and handles messages of one aggregate one after another and
/// of different aggregates side by side. A message is acknowledged when each of its consumers has
/// committed or parked it. Whatever fails is rolled back and parked in the database, with all that
/// comes behind it in its aggregate and for its consumer, and tried again from there with a growing
/// wait, while everything else goes on. What fails permanently, or too often, is dead: it waits for
/// an operator and degrades the health. [`RetryPolicy`](crate::retry::RetryPolicy) says when.
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
            counters: Counters::new(outbox.metrics().clone()),
            outbox,
            subscriber: Arc::new(subscriber),
            states: Arc::default(),
            selection: Selection::all(),
            options: ConsumerOptions::default(),
            health: HealthHandle::default(),
            subscribed: watch::Sender::new(false),
        }
    }

    /// Sets the states that handlers extract.
    #[must_use]
    pub fn with_states(mut self, states: States) -> Self {
        self.states = Arc::new(states);
        self
    }

    /// Takes only the handlers of consumers whose name `wanted` accepts.
    #[must_use]
    pub fn select_consumers(self, wanted: impl Fn(&str) -> bool + Send + Sync + 'static) -> Self {
        self.with_selection(Selection::of(wanted))
    }

    /// Takes only the selected handlers.
    pub(crate) fn with_selection(mut self, selection: Selection) -> Self {
        self.selection = selection;
        self
    }

    /// Sets the options.
    #[must_use]
    pub fn with_options(mut self, options: ConsumerOptions) -> Self {
        self.options = options;
        self
    }

    /// Reports to a health that other parts report to as well.
    #[must_use]
    pub fn with_health(mut self, health: HealthHandle) -> Self {
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
            self.tell_subscribed();
            stop.cancelled().await;
            return Ok(());
        }
        let subscription = Subscription::new(self.outbox.service(), handlers.event_types());
        let connections = self.outbox.pool().options().get_max_connections();
        let concurrency = self.options.concurrency_with(connections);
        let dispatcher = self.dispatcher(handlers, concurrency, stop.clone());
        let crew = Crew::new(dispatcher, concurrency);
        crew.retry_parked();
        let intake = Intake {
            subscriber: &*self.subscriber,
            crew: &crew,
            health: &self.health,
            backoff: self.options.backoff,
            broker_timeout: self.options.broker_timeout,
            subscribed: &self.subscribed,
        };
        match self.subscriber.sharing() {
            Sharing::ByBroker => {
                let source = Source {
                    subscription,
                    part: SUBSCRIPTION.to_owned(),
                    stop,
                    in_work: None,
                };
                let _open = intake.run(&source).await;
                crew.finish(self.options.shutdown_deadline).await
            }
            Sharing::Leased { partitions } => {
                self.run_leased(&intake, &subscription, partitions.get(), &stop)
                    .await
            }
        }
    }

    /// Reads the partitions that this instance has leased.
    async fn run_leased(
        &self,
        intake: &Intake<'_, DB>,
        subscription: &Subscription,
        partitions: u16,
        stop: &CancellationToken,
    ) -> Result<(), ConsumerError> {
        // Others may have all partitions; that keeps no requests out.
        self.health.make_ready(SUBSCRIPTION);
        let mut leases = Leases::new(
            &self.outbox,
            partitions,
            self.options.lease,
            self.options.backoff,
            &self.health,
            &self.subscribed,
        );
        let ended = Notify::new();
        let (begin, mut begun) = mpsc::channel::<Held>(1);
        let mut reading = FuturesUnordered::new();
        {
            let mut keeping = pin!(leases.keep(&begin, &ended, stop));
            loop {
                tokio::select! {
                    () = &mut keeping => break,
                    Some(held) = begun.recv() => {
                        reading.push(read_partition(intake, subscription, held, &ended));
                    }
                    Some(()) = reading.next() => {}
                }
            }
        }
        // The subscriptions in `reading` stay open for what is in work.
        let finished = intake.crew.finish(self.options.shutdown_deadline).await;
        // What they had taken in advance is given back before others read the partitions.
        drop(reading);
        leases.leave().await;
        finished
    }

    fn dispatcher(
        &self,
        handlers: Handlers<DB>,
        concurrency: usize,
        stop: CancellationToken,
    ) -> Dispatcher<DB> {
        let queries = Arc::new(DB::inbox_queries(self.outbox.names()));
        let turns = Arc::new(Turns::new(concurrency));
        let spare = Arc::new(Spare::new(self.outbox.clone(), Arc::clone(&turns)));
        let transactor = Transactor::new(
            self.outbox.clone(),
            Arc::clone(&self.states),
            Arc::clone(&queries),
            Arc::clone(&spare),
        );
        let parking = Parking {
            outbox: self.outbox.clone(),
            spare,
            queries,
            options: self.options.clone(),
            counters: self.counters.clone(),
            changed: Notify::new(),
        };
        Dispatcher {
            handlers,
            transactor,
            parking,
            turns,
            options: self.options.clone(),
            counters: self.counters.clone(),
            health: self.health.clone(),
            stop,
            unhandled_seen: Mutex::default(),
        }
    }

    fn tell_subscribed(&self) {
        self.subscribed.send_replace(true);
        self.health.reach(Milestone::Subscribed);
        self.health.make_ready(SUBSCRIPTION);
    }

    /// Resolves once the group is known to the broker, so that nothing published is missed.
    pub(crate) fn subscribed(&self) -> watch::Receiver<bool> {
        self.subscribed.subscribe()
    }
}

/// Reads a partition until it is given up or lost, and then waits for what of it is in work.
async fn read_partition<DB: Backend>(
    intake: &Intake<'_, DB>,
    subscription: &Subscription,
    held: Held,
    ended: &Notify,
) {
    let in_work = TaskTracker::new();
    let source = Source {
        subscription: subscription.of_partition(held.partition),
        part: format!("{SUBSCRIPTION} to partition {}", held.partition),
        stop: held.stop,
        in_work: Some(in_work.clone()),
    };
    let open = intake.run(&source).await;
    in_work.close();
    in_work.wait().await;
    drop(open);
    held.ended.cancel();
    ended.notify_one();
}

impl<DB: Backend> fmt::Debug for Consumer<DB> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Consumer")
            .field("outbox", &self.outbox)
            .field("options", &self.options)
            .finish_non_exhaustive()
    }
}
