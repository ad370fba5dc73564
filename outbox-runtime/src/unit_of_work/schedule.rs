use std::time::Duration;

use time::OffsetDateTime;

use super::work::UnitOfWork;
use crate::domain::DomainEvent;
use crate::store::{Backend, Due, Error};

/// How far ahead an event can be scheduled.
const MOST_YEARS: u32 = 1_000;
const MOST_SECONDS: u64 = 366 * 24 * 3_600 * MOST_YEARS as u64;

/// Events for later.
impl<DB: Backend> UnitOfWork<'_, DB> {
    /// Raises an event, of no aggregate, at a later time by the database's clock.
    ///
    /// It is stored with the commit, and goes into the log, with the same message id, correlation
    /// and trace, once the time has come and a relay runs. A time in the past is due at once. Its
    /// business key is taken from the commit on, so it can be cancelled by it.
    ///
    /// ```
    /// # use outbox_runtime::prelude::*;
    /// # use outbox_runtime::Error;
    /// # use time::OffsetDateTime;
    /// #[domain_event(version = 1, key = "{order_id}")]
    /// pub struct ReminderDue { pub order_id: i64 }
    ///
    /// # #[cfg(feature = "sqlite")]
    /// async fn remind(outbox: &Outbox<sqlx::Sqlite>, at: OffsetDateTime) -> Result<(), Error> {
    ///     let mut uow = outbox.begin(MessageContext::new()).await?;
    ///     uow.raise_at(ReminderDue { order_id: 7 }, at)?;
    ///     uow.commit().await
    /// }
    /// ```
    ///
    /// # Errors
    /// [`Error::TooFarAhead`], and those of [`raise`](Self::raise). A business key that is stored or
    /// scheduled already is found when it is written: [`Error::DuplicateEvent`].
    pub fn raise_at<E: DomainEvent>(&mut self, event: E, at: OffsetDateTime) -> Result<(), Error> {
        // The past is one to us, and not one to every database.
        self.schedule(&event, Due::At(at.max(OffsetDateTime::UNIX_EPOCH)))
    }

    /// Raises an event, of no aggregate, a while after the commit writes it, by the database's
    /// clock. See [`raise_at`](Self::raise_at).
    ///
    /// # Errors
    /// As [`raise_at`](Self::raise_at).
    pub fn raise_after<E: DomainEvent>(&mut self, event: E, wait: Duration) -> Result<(), Error> {
        if wait.as_secs() > MOST_SECONDS {
            return Err(Error::TooFarAhead { years: MOST_YEARS });
        }
        self.schedule(&event, Due::After(wait))
    }

    /// Takes back a scheduled event by its business key, together with this unit of work's commit.
    ///
    /// `true` means that the event will never be published once this commits. `false` means that
    /// there is none: it was never scheduled, was cancelled, or its time has come first. The key is
    /// what the event's [`business_key`](DomainEvent::business_key) gives. Events that this unit of work itself
    /// has scheduled count too. Relays leave the event alone until this unit of work ends.
    ///
    /// It opens the transaction and writes what is staged, as [`connection`](Self::connection) does.
    ///
    /// ```
    /// # use outbox_runtime::prelude::*;
    /// # use outbox_runtime::Error;
    /// # #[domain_event(version = 1, key = "{order_id}")]
    /// # pub struct ReminderDue { pub order_id: i64 }
    /// # #[cfg(feature = "sqlite")]
    /// async fn paid(outbox: &Outbox<sqlx::Sqlite>) -> Result<bool, Error> {
    ///     let mut uow = outbox.begin(MessageContext::new()).await?;
    ///     let in_time = uow.cancel_scheduled::<ReminderDue>("7").await?;
    ///     uow.commit().await?;
    ///     Ok(in_time)
    /// }
    /// ```
    ///
    /// # Errors
    /// As [`connection`](Self::connection).
    ///
    /// # Cancel safety
    /// See [`UnitOfWork`].
    pub async fn cancel_scheduled<E: DomainEvent>(
        &mut self,
        business_key: &str,
    ) -> Result<bool, Error> {
        self.flush().await?;
        self.enter()?;
        let connection = self.session.writer(&self.outbox).await?;
        let queries = &self.outbox.inner.queries;
        let cancelled = DB::cancel_scheduled(connection, queries, E::NAME, business_key)
            .await
            .map_err(Error::database("cancelling a scheduled event"))?;
        self.broken = false;
        Ok(cancelled)
    }

    fn schedule<E: DomainEvent>(&mut self, event: &E, due: Due) -> Result<(), Error> {
        self.enter()?;
        self.stage.schedule(event, due)?;
        self.has_scheduled = true;
        self.broken = false;
        Ok(())
    }
}
