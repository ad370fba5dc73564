use std::collections::BTreeSet;
use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use super::checks;
use super::error::AppError;
use super::running::{APP, AppParts, RunningApp};
#[cfg(feature = "metrics")]
use super::sampling::{self, Sampler};
use crate::broker::{Broker, Publisher, Subscriber};
use crate::domain::Aggregate;
use crate::handler::States;
use crate::health::HealthHandle;
use crate::inbox::{Consumer, ConsumerOptions, Handlers, Selection};
use crate::problem::Problem;
use crate::relay::{Relay, RelayOptions};
use crate::retention::{Cleaner, Retention};
use crate::store::Backend;
use crate::telemetry::metrics;
use crate::unit_of_work::Outbox;

const DEFAULT_DEADLINE: Duration = Duration::from_secs(30);

/// A service that relays its events and handles those of others.
///
/// It finds every handler that is linked into the program, checks that all fits together and fits
/// the database, and keeps one relay and one consumer running until the shutdown signal: a part
/// that fails is started again, a broker that is down is waited for, and
/// [`health`](Self::health) says so meanwhile. The relay starts once the consumers are subscribed,
/// so that nothing is published past them.
///
/// ```no_run
/// use outbox_runtime::prelude::*;
/// use outbox_runtime::{app::App, broker::InProcessBroker};
///
/// #[derive(Clone)]
/// struct Limits { per_order: u32 }
///
/// # #[cfg(feature = "sqlite")]
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// let outbox = Outbox::new("shop", sqlx::SqlitePool::connect("sqlite:shop.db").await?);
/// outbox.migrate().await?;
/// App::new(outbox)
///     .broker(InProcessBroker::new())
///     .state(Limits { per_order: 10 })
///     .run_until(async { let _ = tokio::signal::ctrl_c().await; })
///     .await?;
/// # Ok(())
/// # }
/// ```
pub struct App<DB: Backend> {
    outbox: Outbox<DB>,
    publisher: Option<Arc<dyn Publisher>>,
    subscriber: Option<Arc<dyn Subscriber>>,
    with_relay: bool,
    with_consumers: bool,
    relay_options: RelayOptions,
    consumer_options: ConsumerOptions,
    retention: Option<Retention>,
    states: States,
    selection: Selection,
    unchecked_tables: BTreeSet<&'static str>,
    deadline: Duration,
    health: HealthHandle,
    #[cfg(feature = "metrics")]
    metrics_interval: Option<Duration>,
}

impl<DB: Backend> App<DB> {
    /// An app of the outbox's service, with a relay and consumers.
    pub fn new(outbox: Outbox<DB>) -> Self {
        let health = HealthHandle::new();
        health.make_unready(APP, "the app has not started yet");
        Self {
            outbox,
            publisher: None,
            subscriber: None,
            with_relay: true,
            with_consumers: true,
            relay_options: RelayOptions::default(),
            consumer_options: ConsumerOptions::default(),
            retention: None,
            states: States::default(),
            selection: Selection::all(),
            unchecked_tables: BTreeSet::new(),
            deadline: DEFAULT_DEADLINE,
            health,
            #[cfg(feature = "metrics")]
            metrics_interval: Some(sampling::INTERVAL),
        }
    }

    /// Sets the broker to publish to and to consume from.
    #[must_use]
    pub fn broker(mut self, broker: impl Broker + 'static) -> Self {
        let broker = Arc::new(broker);
        self.publisher = Some(Arc::clone(&broker) as Arc<dyn Publisher>);
        self.subscriber = Some(broker);
        self
    }

    /// Sets where the relay publishes to.
    #[must_use]
    pub fn publisher(mut self, publisher: impl Publisher + 'static) -> Self {
        self.publisher = Some(Arc::new(publisher));
        self
    }

    /// Sets where the consumers get their messages from.
    #[must_use]
    pub fn subscriber(mut self, subscriber: impl Subscriber + 'static) -> Self {
        self.subscriber = Some(Arc::new(subscriber));
        self
    }

    /// Leaves the relay to another process.
    #[must_use]
    pub fn without_relay(mut self) -> Self {
        self.with_relay = false;
        self
    }

    /// Leaves the handlers to another process.
    #[must_use]
    pub fn without_consumers(mut self) -> Self {
        self.with_consumers = false;
        self
    }

    /// Sets the options of the relay.
    #[must_use]
    pub fn relay_options(mut self, options: RelayOptions) -> Self {
        self.relay_options = options;
        self
    }

    /// Sets the options of the consumers.
    #[must_use]
    pub fn consumer_options(mut self, options: ConsumerOptions) -> Self {
        self.consumer_options = options;
        self
    }

    /// Removes what is finished, on one instance at a time. Without it, nothing is removed.
    #[must_use]
    pub fn retention(mut self, retention: Retention) -> Self {
        self.retention = Some(retention);
        self
    }

    /// Sets the state of type `T` that handlers extract by `State<T>`.
    #[must_use]
    pub fn state<T: Clone + Send + Sync + 'static>(mut self, state: T) -> Self {
        self.states.insert(state);
        self
    }

    /// Runs only the consumers whose name `wanted` accepts, for a program that holds the handlers
    /// of several services.
    #[must_use]
    pub fn select_consumers(
        mut self,
        wanted: impl Fn(&str) -> bool + Send + Sync + 'static,
    ) -> Self {
        self.selection = Selection::of(wanted);
        self
    }

    /// Does not check the table of `A`, which is linked into this program and lives in another
    /// database.
    #[must_use]
    pub fn without_table_check<A: Aggregate>(mut self) -> Self {
        self.unchecked_tables.insert(A::TYPE);
        self
    }

    /// Sets how long the parts may take to come to rest after the shutdown signal (30 s unless
    /// told). Handlers get three quarters of it, so that the relay can write down what they did
    /// and give back its leases in the rest.
    #[must_use]
    pub fn shutdown_deadline(mut self, deadline: Duration) -> Self {
        self.deadline = deadline;
        self
    }

    /// Sets how often metrics are taken from the database that are states of its tables (15 s
    /// unless told, and at least 100 ms); `None` for never. See [`telemetry::metrics`](crate::telemetry::metrics).
    #[cfg(feature = "metrics")]
    #[must_use]
    pub fn metrics_interval(mut self, interval: Option<Duration>) -> Self {
        self.metrics_interval = interval.map(|interval| interval.max(Duration::from_millis(100)));
        self
    }

    /// Sets after how long a piece of work with the database counts as hanging, although the
    /// database answers (five minutes unless told): then the [`Liveness`](crate::health::Liveness)
    /// says so.
    #[must_use]
    pub fn stuck_after(self, limit: Duration) -> Self {
        self.health.stuck_after(limit);
        self
    }

    /// The health of the app, its readiness and its liveness, to be asked for while it runs.
    pub fn health(&self) -> HealthHandle {
        self.health.clone()
    }

    /// Starts the app, runs it until `shutdown` resolves, and lets it come to rest.
    ///
    /// # Errors
    /// Those of [`start`](Self::start) and [`RunningApp::shutdown`].
    ///
    /// # Cancel safety
    /// Dropping the call cancels the parts at once, as a crash would.
    pub async fn run_until(
        self,
        shutdown: impl Future<Output = ()> + Send,
    ) -> Result<(), AppError> {
        let running = self.start().await?;
        shutdown.await;
        running.shutdown().await
    }

    /// Checks the program and its database, and starts relay and consumers.
    ///
    /// # Errors
    /// [`AppError::Startup`] with all problems at once: handlers, states, events, tables and
    /// columns that do not fit, a missing broker, migrations that are missing or newer than the
    /// program. [`AppError::Database`] when the database can't be looked at.
    ///
    /// # Cancel safety
    /// Nothing is started before all checks are done.
    pub async fn start(self) -> Result<RunningApp, AppError> {
        let problems = self.check().await?;
        if !problems.is_empty() {
            return Err(AppError::Startup(problems));
        }
        checks::warn_of_lost_names(&self.outbox)
            .await
            .map_err(AppError::Database)?;
        metrics::describe();
        #[cfg(feature = "metrics")]
        let sampler = self.metrics_interval.map(|interval| Sampler {
            interval,
            outbox: self.outbox.clone(),
            consumers: Handlers::<DB>::collect(&self.selection, &self.states)
                .map(|handlers| handlers.consumers_and_nobody())
                .unwrap_or_default(),
        });
        let outbox = self.outbox.clone();
        let consumer = self.subscriber.filter(|_| self.with_consumers).map(|from| {
            Consumer::new(self.outbox.clone(), from)
                .with_states(self.states)
                .with_selection(self.selection)
                .with_options(
                    self.consumer_options
                        .shutdown_deadline(self.deadline / 4 * 3),
                )
                .with_health(self.health.clone())
        });
        let cleaner = self
            .retention
            .map(|retention| Cleaner::new(self.outbox.clone(), retention))
            .transpose()
            .map_err(|error| AppError::Startup(vec![Problem::new(error.to_string())]))?
            .map(|cleaner| cleaner.with_health(self.health.clone()));
        let relay = self.publisher.filter(|_| self.with_relay).map(|to| {
            Relay::new(self.outbox, to)
                .with_options(self.relay_options.shutdown_deadline(self.deadline))
                .map(|relay| relay.with_health(self.health.clone()))
        });
        // The options were checked above; the type asks once more.
        let relay = relay
            .transpose()
            .map_err(|error| AppError::Startup(vec![Problem::new(error.to_string())]))?;
        Ok(RunningApp::start(AppParts {
            outbox,
            relay,
            consumer,
            cleaner,
            #[cfg(feature = "metrics")]
            sampler,
            health: self.health,
            deadline: self.deadline,
        }))
    }

    async fn check(&self) -> Result<Vec<Problem>, AppError> {
        let mut problems = checks::check_events();
        problems.extend(checks::check_aggregates());
        if self.with_relay && self.publisher.is_none() {
            problems.push(Problem::new(
                "the app has nowhere to publish to; call `.broker(..)` or `.publisher(..)`, or \
                 `.without_relay()` if another process relays its events",
            ));
        }
        if let Err(error) = self.relay_options.check() {
            problems.push(Problem::new(error.to_string()));
        }
        if let Some(Err(error)) = self.retention.as_ref().map(Retention::check) {
            problems.push(Problem::new(error.to_string()));
        }
        if self.with_consumers {
            problems.extend(self.check_handlers());
        }
        let checked = async {
            let mut problems = checks::check_migrations(&self.outbox).await?;
            problems.extend(checks::check_tables(&self.outbox, &self.unchecked_tables).await?);
            Ok(problems)
        };
        problems.extend(checked.await.map_err(AppError::Database)?);
        problems.sort_by_key(Problem::place);
        Ok(problems)
    }

    fn check_handlers(&self) -> Vec<Problem> {
        match Handlers::<DB>::collect(&self.selection, &self.states) {
            Err(problems) => problems,
            Ok(handlers) if !handlers.is_empty() && self.subscriber.is_none() => {
                vec![Problem::new(
                    "the program has handlers and the app has nowhere to get messages from; call \
                     `.broker(..)` or `.subscriber(..)`, or `.without_consumers()` if another \
                     process handles them",
                )]
            }
            Ok(_) => Vec::new(),
        }
    }
}

impl<DB: Backend> fmt::Debug for App<DB> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("App")
            .field("outbox", &self.outbox)
            .field("with_relay", &self.with_relay)
            .field("with_consumers", &self.with_consumers)
            .finish_non_exhaustive()
    }
}
