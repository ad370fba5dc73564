use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use sqlx::{Connection, Pool};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::notices::Notices;
use super::session::{Session, WriteTransaction};
use super::work::UnitOfWork;
use crate::clock::Clock;
use crate::domain::MessageContext;
use crate::store::{self, Backend, Error, Migration, Names, Wake};
use crate::telemetry::metrics::Metrics;

/// How long a unit of work waits for the one write transaction of a single-writer database.
const WRITER_WAIT: Duration = Duration::from_secs(30);

/// A service's door to its database: it begins units of work and carries their events to the relay.
///
/// Clones share everything, so keep one in your application's state.
///
/// ```
/// # use outbox_runtime::prelude::*;
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// # #[cfg(feature = "sqlite")] {
/// let pool = sqlx::SqlitePool::connect("sqlite::memory:").await?;
/// let outbox = Outbox::new("order-service", pool);
/// outbox.migrate().await?;
/// let unit_of_work = outbox.begin(MessageContext::new()).await?;
/// unit_of_work.commit().await?;
/// # }
/// # Ok(())
/// # }
/// ```
pub struct Outbox<DB: Backend> {
    pub(crate) inner: Arc<Inner<DB>>,
}

pub(crate) struct Inner<DB: Backend> {
    pub(crate) service: String,
    pub(crate) pool: Pool<DB>,
    pub(crate) names: Names,
    pub(crate) queries: DB::Queries,
    pub(crate) clock: Clock,
    pub(crate) metrics: Metrics,
    pub(crate) wake: Wake,
    /// Tells the relays of this process that an event was scheduled.
    pub(crate) schedules: Wake,
    /// Tells the relays and consumers of this process that an operator changed what is parked.
    pub(crate) letters: Wake,
    /// Tells other processes, unless they are not to be told.
    pub(super) notices: Option<Notices>,
    /// One permit on a single-writer database: its writers wait here, in order, instead of
    /// failing when the file's lock does not come free in time.
    writer: Arc<Semaphore>,
}

/// Sets up an [`Outbox`] with a schema or a prefix of its own.
#[derive(Debug)]
pub struct OutboxBuilder<DB: Backend> {
    service: String,
    pool: Pool<DB>,
    schema: Option<String>,
    prefix: String,
    notify: bool,
    clock: Clock,
}

impl<DB: Backend> Outbox<DB> {
    /// An outbox in the connection's own schema, with plain table names.
    ///
    /// The service's name is the `producer` of its events and the group under which it consumes.
    pub fn new(service: impl Into<String>, pool: Pool<DB>) -> Self {
        Self::with_names(
            service.into(),
            pool,
            Names::default(),
            true,
            Clock::system(),
        )
    }

    /// An outbox to set up further.
    pub fn builder(service: impl Into<String>, pool: Pool<DB>) -> OutboxBuilder<DB> {
        OutboxBuilder {
            service: service.into(),
            pool,
            schema: None,
            prefix: String::new(),
            notify: true,
            clock: Clock::system(),
        }
    }

    fn with_names(
        service: String,
        pool: Pool<DB>,
        names: Names,
        notify: bool,
        clock: Clock,
    ) -> Self {
        Self {
            inner: Arc::new(Inner {
                metrics: Metrics::new(&service, &clock),
                service,
                queries: DB::queries(&names),
                clock,
                pool,
                names,
                wake: Wake::default(),
                schedules: Wake::default(),
                letters: Wake::default(),
                notices: (notify && DB::NOTIFIES).then(Notices::default),
                writer: Arc::new(Semaphore::new(1)),
            }),
        }
    }

    /// The service's name.
    pub fn service(&self) -> &str {
        &self.inner.service
    }

    /// The pool that the outbox works on.
    pub fn pool(&self) -> &Pool<DB> {
        &self.inner.pool
    }

    /// Where its metrics go.
    pub(crate) fn metrics(&self) -> &Metrics {
        &self.inner.metrics
    }

    /// Where the tables are.
    pub fn names(&self) -> &Names {
        &self.inner.names
    }

    /// Tells the relays that there are new rows: for events whose commit was yours, after
    /// [`join`](Self::join). Without it they are found by polling.
    pub fn wake(&self) {
        self.inner.schedules.signal();
        self.wake_for_events();
    }

    /// Tells the relays that the log has new rows.
    pub(crate) fn wake_for_events(&self) {
        self.inner.wake.signal();
        if let Some(notices) = &self.inner.notices {
            notices.send_soon(self);
        }
    }

    /// Creates the tables, or brings them up to date. Several processes may do it at once.
    ///
    /// # Errors
    /// [`Error::Database`] when the database is unreachable or refuses the SQL.
    ///
    /// # Cancel safety
    /// Each run is one transaction: a cancelled one changes nothing.
    pub async fn migrate(&self) -> Result<(), Error> {
        DB::migrate(&self.inner.pool, &self.inner.names).await
    }

    /// The SQL of the tables, to put among your own migrations instead of calling
    /// [`migrate`](Self::migrate).
    pub fn migrations(&self) -> Vec<Migration> {
        DB::migrations(&self.inner.names)
    }

    /// Checks that the tables fit this program.
    ///
    /// # Errors
    /// [`Error::NotMigrated`] when they are missing or older, [`Error::MigrationsTooNew`] when
    /// they are newer, [`Error::Database`] when they can't be read.
    ///
    /// # Cancel safety
    /// It only reads.
    pub async fn check_migrations(&self) -> Result<(), Error> {
        let applied = DB::applied(&self.inner.pool, &self.inner.names).await?;
        store::compare(applied, &self.migrations())
    }

    /// Begins a unit of work. It is lazy: no connection is taken before the first load or write.
    ///
    /// # Errors
    /// [`Error::Context`] when the context can't travel in an envelope.
    ///
    /// # Cancel safety
    /// It awaits nothing that could be lost.
    pub async fn begin(&self, context: MessageContext) -> Result<UnitOfWork<'static, DB>, Error> {
        context.check()?;
        Ok(UnitOfWork::new(self.clone(), Session::Idle, context))
    }

    /// Begins a unit of work inside a transaction of yours: its commit writes the aggregates and
    /// events and leaves the transaction's end to you.
    ///
    /// Call [`wake`](Self::wake) after your own commit to have the events relayed at once. What the
    /// unit of work has written when it is dropped stays in your transaction, changes and events
    /// together; so roll yours back after a failure.
    ///
    /// # Errors
    /// [`Error::Context`] when the context can't travel in an envelope, [`Error::NotInTransaction`]
    /// when the connection has no transaction open.
    ///
    /// # Cancel safety
    /// It awaits nothing that could be lost.
    pub async fn join<'a>(
        &self,
        connection: &'a mut DB::Connection,
        context: MessageContext,
    ) -> Result<UnitOfWork<'a, DB>, Error> {
        context.check()?;
        if !connection.is_in_transaction() {
            return Err(Error::NotInTransaction);
        }
        Ok(UnitOfWork::new(
            self.clone(),
            Session::Joined(connection),
            context,
        ))
    }

    /// Begins a unit of work whose transaction is open already: a handler's.
    pub(crate) fn begin_within(
        &self,
        transaction: WriteTransaction<DB>,
        context: MessageContext,
    ) -> UnitOfWork<'static, DB> {
        UnitOfWork::new(self.clone(), Session::Transaction(transaction), context)
    }

    pub(super) async fn turn(&self) -> Result<Option<OwnedSemaphorePermit>, Error> {
        if !DB::SINGLE_WRITER {
            return Ok(None);
        }
        let turn = Arc::clone(&self.inner.writer).acquire_owned();
        let turn = tokio::time::timeout(WRITER_WAIT, turn).await;
        // The semaphore is never closed, so the wait ends by a turn or by its limit.
        turn.ok().and_then(Result::ok).map(Some).ok_or(Error::Busy {
            seconds: WRITER_WAIT.as_secs(),
        })
    }
}

impl<DB: Backend> Clone for Outbox<DB> {
    fn clone(&self) -> Self {
        Self {
            inner: Arc::clone(&self.inner),
        }
    }
}

impl<DB: Backend> fmt::Debug for Outbox<DB> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Outbox")
            .field("service", &self.inner.service)
            .field("database", &DB::NAME)
            .field("names", &self.inner.names)
            .finish_non_exhaustive()
    }
}

impl<DB: Backend> OutboxBuilder<DB> {
    /// Puts the tables into a schema of PostgreSQL. SQLite has none: there, use a
    /// [`prefix`](Self::prefix) or a file of its own.
    #[must_use]
    pub fn schema(mut self, schema: impl Into<String>) -> Self {
        self.schema = Some(schema.into());
        self
    }

    /// Begins each table's name with a prefix, so that two services can share a database.
    #[must_use]
    pub fn prefix(mut self, prefix: impl Into<String>) -> Self {
        self.prefix = prefix.into();
        self
    }

    /// Whether commits are told to the relays of other processes (PostgreSQL's `NOTIFY`, a moment
    /// after the commit and outside of it). It is on unless set; without it, they poll.
    #[must_use]
    pub fn notify(mut self, notify: bool) -> Self {
        self.notify = notify;
        self
    }

    /// Sets the process's wall clock, for tests: see [`Clock`] for the little that it is read for.
    #[must_use]
    pub fn clock(mut self, clock: Clock) -> Self {
        self.clock = clock;
        self
    }

    /// The outbox.
    ///
    /// # Errors
    /// [`Error::Names`] when the schema or the prefix is not a plain identifier,
    /// [`Error::NoSchemas`] for a schema on SQLite.
    pub fn build(self) -> Result<Outbox<DB>, Error> {
        let names = Names::new(self.schema.as_deref(), &self.prefix)?;
        if !DB::HAS_SCHEMAS && names.schema().is_some() {
            return Err(Error::NoSchemas);
        }
        Ok(Outbox::with_names(
            self.service,
            self.pool,
            names,
            self.notify,
            self.clock,
        ))
    }
}
