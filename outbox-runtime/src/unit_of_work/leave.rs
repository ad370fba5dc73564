use tracing::Instrument;

use super::outbox::Outbox;
use super::session::{Session, WriteTransaction};
use super::work::UnitOfWork;
use crate::store::{Backend, Error};
use crate::telemetry::metrics::Timer;
use crate::telemetry::spans;

/// The transaction that a unit of work has left to others, who commit it.
pub(crate) struct Left<DB: Backend> {
    pub(crate) transaction: WriteTransaction<DB>,
    pub(crate) written: Written,
}

/// What is to be told, or looked at, when a transaction of several units of work ends.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Written {
    events: usize,
    has_scheduled: bool,
    /// A user had the connection, and it was not looked at since.
    pub(crate) is_lent: bool,
}

impl Written {
    pub(crate) fn add(&mut self, other: Self) {
        self.events = self.events.saturating_add(other.events);
        self.has_scheduled |= other.has_scheduled;
        self.is_lent |= other.is_lent;
    }
}

impl<DB: Backend> UnitOfWork<'static, DB> {
    /// Writes all that is staged and leaves the transaction's end to the caller.
    pub(crate) async fn leave(mut self) -> Result<Left<DB>, Error> {
        let stage = &self.stage;
        let (events, has_scheduled) = (stage.events(), self.has_scheduled);
        if stage.is_empty() {
            self.write_staged().await?;
        } else {
            let span = spans::commit(events, stage.correlation_id(), stage.subject());
            let result = self.write_staged().instrument(span.clone()).await;
            if result.is_err() {
                spans::failed(&span, "transient");
            }
            result?;
        }
        let written = Written {
            events,
            has_scheduled,
            is_lent: self.lent,
        };
        match std::mem::replace(&mut self.session, Session::Idle) {
            Session::Transaction(transaction) => {
                // Before the next handler writes: outside of a transaction it would be for good.
                transaction.require_open()?;
                Ok(Left {
                    transaction,
                    written,
                })
            }
            _ => Err(Error::MustRollBack),
        }
    }

    async fn write_staged(&mut self) -> Result<(), Error> {
        self.carry_trace();
        self.enter()?;
        self.stage.check_saved()?;
        // Where a look costs no round trip it is not put off until the commit.
        if DB::SINGLE_WRITER || !self.stage.is_empty() {
            self.check_lent().await?;
        }
        if !self.stage.is_empty() {
            let batch = self.stage.take();
            let connection = self.session.writer(&self.outbox).await?;
            DB::write(connection, &self.outbox.inner.queries, batch).await?;
        }
        Ok(())
    }
}

impl<DB: Backend> Outbox<DB> {
    /// Tells of what was left in a transaction that has now ended, with an outcome that the table of
    /// metrics has.
    pub(crate) fn tell_of_commit(&self, outcome: &'static str, written: Written, timer: &Timer) {
        self.metrics().commit(outcome, written.events, timer);
        if outcome != "committed" {
            return;
        }
        if written.events > 0 {
            self.wake_for_events();
        }
        if written.has_scheduled {
            self.inner.schedules.signal();
        }
    }
}
