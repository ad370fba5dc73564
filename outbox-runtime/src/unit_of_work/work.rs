use std::fmt;

use tracing::Instrument;

use super::outbox::Outbox;
use super::session::{Session, WriteTransaction};
use super::stage::Stage;
use crate::domain::{Aggregate, DomainEvent, MessageContext};
use crate::fault::{self, Point};
use crate::store::{Backend, Change, ConflictMark, Error, Stores};
use crate::telemetry::metrics::Timer;
use crate::telemetry::{spans, trace_context};

/// A business transaction: it loads aggregates, stages their changes and events, and commits all
/// of it or nothing.
///
/// It is lazy. Loads before the first write need no transaction, as the version check guards the
/// change; what is saved is staged and written by the commit, on PostgreSQL as one statement. A
/// transaction is opened the moment something needs one: [`connection`](Self::connection), a row
/// lock, a savepoint, a persistence of your own, or a few hundred aggregates.
///
/// Dropping it without a commit rolls everything back.
///
/// ```
/// # use outbox_runtime::prelude::*;
/// # use outbox_runtime::Error;
/// # typed_id! { pub struct OrderId(i64); }
/// # #[domain_event(version = 1)] pub struct OrderPaid { pub order_id: OrderId }
/// #[aggregate(events(OrderPaid))]
/// pub struct Order { id: OrderId, paid: bool, root: AggregateRoot }
///
/// impl Order {
///     fn pay(&mut self) {
///         self.paid = true;
///         let order_id = self.id.clone();
///         self.raise(OrderPaid { order_id });
///     }
/// }
///
/// # #[cfg(feature = "sqlite")]
/// async fn pay(outbox: &Outbox<sqlx::Sqlite>, id: OrderId) -> Result<(), Error> {
///     let mut uow = outbox.begin(MessageContext::new().correlation_id("order-7")).await?;
///     let mut order = uow.get::<Order>(&id).await?;
///     order.pay();
///     uow.save(&mut order).await?;
///     uow.commit().await
/// }
/// ```
///
/// # Cancel safety
/// A method that is cancelled leaves the unit of work usable only for a rollback: a later
/// [`commit`](Self::commit) answers [`Error::MustRollBack`]. A cancelled commit has either
/// happened as a whole or not at all; look at the aggregate's version to know which.
pub struct UnitOfWork<'a, DB: Backend> {
    pub(super) outbox: Outbox<DB>,
    pub(super) session: Session<'a, DB>,
    pub(super) stage: Stage<DB>,
    context: MessageContext,
    /// Open savepoints: their number and how many events were staged before them.
    pub(super) savepoints: Vec<(u64, usize)>,
    /// A step failed or was cancelled midway.
    pub(super) broken: bool,
    /// An event was scheduled.
    pub(super) has_scheduled: bool,
    /// The transaction is the user's.
    is_joined: bool,
    /// The user had the connection since our last statement on it.
    pub(super) lent: bool,
}

impl<'a, DB: Backend> UnitOfWork<'a, DB> {
    pub(crate) fn new(
        outbox: Outbox<DB>,
        session: Session<'a, DB>,
        context: MessageContext,
    ) -> Self {
        Self {
            stage: Stage::new(outbox.service(), &context, outbox.inner.clock.clone()),
            is_joined: matches!(session, Session::Joined(_)),
            lent: matches!(session, Session::Joined(_)),
            outbox,
            session,
            context,
            savepoints: Vec::new(),
            broken: false,
            has_scheduled: false,
        }
    }

    /// The context that the events inherit.
    pub fn context(&self) -> &MessageContext {
        &self.context
    }

    /// Stages a new aggregate with the events that it raised.
    ///
    /// # Errors
    /// [`Error::AlreadyExists`] when it was stored before (from the commit, where the database
    /// has to tell), and what [`save`](Self::save) answers.
    ///
    /// # Cancel safety
    /// See [`UnitOfWork`].
    pub async fn add<A: Aggregate>(&mut self, aggregate: &mut A) -> Result<(), Error>
    where
        DB: Stores<A>,
    {
        if aggregate.root().version() != 0 {
            return Err(Error::AlreadyExists {
                aggregate_type: A::TYPE,
                aggregate_id: aggregate.id().to_string(),
            });
        }
        self.write(aggregate, Change::Insert).await
    }

    /// Stages a changed aggregate with the events that it raised.
    ///
    /// The aggregate's version moves on at once, so it can be changed and saved again. After a
    /// failure load it anew.
    ///
    /// # Errors
    /// [`Error::NotStored`] for an aggregate that was never stored, [`Error::Encode`],
    /// [`Error::Key`] or [`Error::Column`] when a value can't be written. The version is checked
    /// when the change is written, at the latest by the commit: [`Error::VersionConflict`].
    ///
    /// # Cancel safety
    /// See [`UnitOfWork`].
    pub async fn save<A: Aggregate>(&mut self, aggregate: &mut A) -> Result<(), Error>
    where
        DB: Stores<A>,
    {
        require_stored(aggregate)?;
        self.write(aggregate, Change::Update).await
    }

    /// Stages the removal of an aggregate, with its last events.
    ///
    /// # Errors
    /// As [`save`](Self::save).
    ///
    /// # Cancel safety
    /// See [`UnitOfWork`].
    pub async fn remove<A: Aggregate>(&mut self, aggregate: &mut A) -> Result<(), Error>
    where
        DB: Stores<A>,
    {
        require_stored(aggregate)?;
        self.write(aggregate, Change::Delete).await
    }

    /// Raises an event that belongs to no aggregate. It has no order relative to others.
    ///
    /// # Errors
    /// [`Error::Encode`] or [`Error::Key`] when it can't be written, [`Error::MustRollBack`]
    /// after an earlier failure.
    pub fn raise<E: DomainEvent>(&mut self, event: E) -> Result<(), Error> {
        self.enter()?;
        self.stage.event(&event, None)?;
        self.broken = false;
        Ok(())
    }

    /// The connection of the unit of work's transaction, for SQL of your own.
    ///
    /// It opens the transaction and writes the aggregates that are staged, so your SQL sees them.
    /// The events are written by the commit all the same. Do not end the transaction yourself.
    ///
    /// ```
    /// # use outbox_runtime::prelude::*;
    /// # #[cfg(feature = "sqlite")]
    /// # async fn example(uow: &mut UnitOfWork<'_, sqlx::Sqlite>) -> Result<(), Box<dyn std::error::Error>> {
    /// sqlx::query("UPDATE counters SET orders = orders + 1")
    ///     .execute(&mut *uow.connection().await?)
    ///     .await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::Database`] when no transaction can begin, [`Error::Busy`] when the one write
    /// transaction of SQLite stays taken, and what the staged writes answer.
    ///
    /// # Cancel safety
    /// See [`UnitOfWork`].
    pub async fn connection(&mut self) -> Result<&mut DB::Connection, Error> {
        self.flush().await?;
        self.lent = true;
        self.session.writer(&self.outbox).await
    }

    /// Commits the aggregates' changes and their events together.
    ///
    /// # Errors
    /// [`Error::VersionConflict`], [`Error::AlreadyExists`] or [`Error::DuplicateEvent`] when
    /// another unit of work was faster; [`Error::UnsavedEvents`] when an aggregate raised events
    /// after its last save; [`Error::MustRollBack`] after an earlier failure; [`Error::Database`]
    /// when the database fails. Nothing is stored then, with one exception that no database can
    /// spare its clients: when the connection breaks while the commit is under way, it may have
    /// happened.
    ///
    /// # Cancel safety
    /// See [`UnitOfWork`].
    pub async fn commit(self) -> Result<(), Error> {
        self.end(false).await.map(drop)
    }

    /// Commits; who wants to `keep` the transaction's connection gets it back with the next transaction
    /// begun.
    pub(crate) async fn end(self, keep: bool) -> Result<Option<WriteTransaction<DB>>, Error> {
        let (outbox, timer) = (self.outbox.clone(), Timer::start());
        let (events, is_joined) = (self.stage.events(), self.is_joined);
        let stage = &self.stage;
        let span = spans::commit(stage.events(), stage.correlation_id(), stage.subject());
        let result = self.end_in_span(keep).instrument(span.clone()).await;
        let outcome = match &result {
            Ok(_) if is_joined => "joined",
            Ok(_) => "committed",
            Err(error) => kind_of(error),
        };
        if result.is_err() {
            spans::failed(&span, outcome);
        }
        outbox.metrics().commit(outcome, events, &timer);
        result
    }

    async fn end_in_span(mut self, keep: bool) -> Result<Option<WriteTransaction<DB>>, Error> {
        self.carry_trace();
        self.enter()?;
        self.stage.check_saved()?;
        let raised = self.stage.events() > 0;
        if !self.stage.is_empty() || self.is_joined {
            self.check_lent().await?;
        }
        if !self.stage.is_empty() {
            let batch = self.stage.take();
            let connection = if DB::ONE_STATEMENT && !self.session.in_transaction() {
                at(Point::BeforeCommit).await?;
                self.session.reader(&self.outbox).await?
            } else {
                self.session.writer(&self.outbox).await?
            };
            DB::write(connection, &self.outbox.inner.queries, batch).await?;
        }
        let mut kept = None;
        if let Session::Transaction(transaction) =
            std::mem::replace(&mut self.session, Session::Idle)
        {
            at(Point::BeforeCommit).await?;
            // Nothing was written since the user had the connection, so one look at the transaction
            // is enough, and it goes along with the commit.
            kept = transaction.end(keep, self.lent).await?;
        }
        if !self.is_joined {
            at(Point::AfterCommit).await?;
            if raised {
                self.outbox.wake_for_events();
            }
            if self.has_scheduled {
                self.outbox.inner.schedules.signal();
            }
        }
        Ok(kept)
    }

    /// Takes everything back; dropping the unit of work does the same, later.
    ///
    /// # Errors
    /// [`Error::Database`] when the connection is gone; the database takes everything back then.
    ///
    /// # Cancel safety
    /// A cancelled rollback still takes everything back.
    pub async fn rollback(mut self) -> Result<(), Error> {
        match std::mem::replace(&mut self.session, Session::Idle) {
            Session::Transaction(transaction) => transaction.rollback().await,
            _ => Ok(()),
        }
    }

    async fn write<A: Aggregate>(&mut self, aggregate: &mut A, change: Change) -> Result<(), Error>
    where
        DB: Stores<A>,
    {
        let aggregate_id = aggregate.id().to_string();
        let mapped = <DB as Stores<A>>::table().is_some();
        if !mapped || self.stage.is_full() || self.stage.holds::<A>(&aggregate_id) {
            // A row can be written once a statement, and SQL of the user's own comes after it.
            self.flush().await?;
        }
        self.enter()?;
        let staged = aggregate.root_mut().stage();
        for (sequence, event) in &staged.events {
            let owner = (A::TYPE, aggregate_id.clone(), *sequence);
            self.stage.event(event.as_ref(), Some(owner))?;
        }
        self.stage.watch(aggregate);
        if mapped {
            self.stage.row(aggregate, change, staged.expected_version)?;
        } else {
            self.write_now(aggregate, change, staged.expected_version)
                .await?;
        }
        self.broken = false;
        if self.is_joined && !mapped {
            self.flush().await?;
        }
        Ok(())
    }

    async fn write_now<A: Aggregate>(
        &mut self,
        aggregate: &A,
        change: Change,
        expected_version: i64,
    ) -> Result<(), Error>
    where
        DB: Stores<A>,
    {
        self.lent = true;
        let connection = self.session.writer(&self.outbox).await?;
        let written = <DB as Stores<A>>::write_now(aggregate, change, expected_version, connection)
            .await
            .map_err(Error::database("writing an aggregate"))?;
        if written {
            return Ok(());
        }
        Err(match change {
            Change::Insert => Error::AlreadyExists {
                aggregate_type: A::TYPE,
                aggregate_id: aggregate.id().to_string(),
            },
            Change::Update | Change::Delete => Error::VersionConflict {
                aggregate_type: A::TYPE,
                aggregate_id: aggregate.id().to_string(),
                expected_version,
                mark: ConflictMark,
            },
        })
    }

    /// Opens the transaction and writes the staged rows.
    pub(super) async fn flush(&mut self) -> Result<(), Error> {
        self.enter()?;
        self.carry_trace();
        let batch = if self.is_joined {
            // The transaction's end is the user's: no change may be in it without its events.
            self.stage.take()
        } else {
            self.stage.take_rows()
        };
        if !batch.is_empty() {
            self.check_lent().await?;
        }
        let connection = self.session.writer(&self.outbox).await?;
        if !batch.is_empty() {
            DB::write(connection, &self.outbox.inner.queries, batch).await?;
        }
        self.broken = false;
        Ok(())
    }

    /// Has the events that are written now join the trace of the current span.
    pub(super) fn carry_trace(&mut self) {
        if let Some(trace) = trace_context::in_place_of(&self.context) {
            self.stage.carry(trace);
        }
    }

    /// Makes sure that the transaction is still the one that was begun, if the user had it.
    pub(super) async fn check_lent(&mut self) -> Result<(), Error> {
        if self.lent {
            DB::check_transaction(self.session.writer(&self.outbox).await?)
                .await
                .map_err(Error::database(
                    "going on with a transaction in which a statement failed, or that was ended",
                ))?;
            self.lent = false;
        }
        Ok(())
    }

    /// Marks the unit of work as broken until the step that begins here has succeeded, so that a
    /// failure or a cancelled future can't be followed by a commit of half of it.
    pub(super) fn enter(&mut self) -> Result<(), Error> {
        if self.broken {
            return Err(Error::MustRollBack);
        }
        self.broken = true;
        Ok(())
    }
}

impl<DB: Backend> fmt::Debug for UnitOfWork<'_, DB> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UnitOfWork")
            .field("service", &self.outbox.service())
            .field("context", &self.context)
            .field("in_transaction", &self.session.in_transaction())
            .field("events", &self.stage.events())
            .finish_non_exhaustive()
    }
}

/// To the caller, a failure here is one of the database.
async fn at(point: Point) -> Result<(), Error> {
    let passed = fault::at(point).await.map_err(sqlx::Error::from);
    passed.map_err(Error::database("committing"))
}

/// What a span says of an error.
fn kind_of(error: &Error) -> &'static str {
    if error.is_version_conflict() {
        "version_conflict"
    } else if error.is_transient() {
        "transient"
    } else {
        "permanent"
    }
}

fn require_stored<A: Aggregate>(aggregate: &A) -> Result<(), Error> {
    if aggregate.root().version() > 0 {
        return Ok(());
    }
    Err(Error::NotStored {
        aggregate_type: A::TYPE,
        aggregate_id: aggregate.id().to_string(),
    })
}
