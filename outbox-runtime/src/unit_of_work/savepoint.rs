use std::sync::atomic::{AtomicU64, Ordering};

use super::work::UnitOfWork;
use crate::store::{Backend, Error};

/// A mark to which a unit of work can return.
#[derive(Debug)]
#[must_use = "release it or roll back to it"]
pub struct Savepoint(u64);

/// Numbers are unique in the process, so that no unit of work takes another one's savepoint for its own.
static NEXT: AtomicU64 = AtomicU64::new(1);

/// Savepoints.
impl<DB: Backend> UnitOfWork<'_, DB> {
    /// Marks a point to which [`rollback_to`](Self::rollback_to) returns.
    ///
    /// # Errors
    /// As [`connection`](Self::connection).
    ///
    /// # Cancel safety
    /// See [`UnitOfWork`].
    pub async fn savepoint(&mut self) -> Result<Savepoint, Error> {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        self.flush().await?;
        self.check_lent().await?;
        self.run_savepoint("SAVEPOINT", number).await?;
        self.savepoints.push((number, self.stage.events()));
        Ok(Savepoint(number))
    }

    /// Takes back everything since the savepoint: SQL, aggregates and events.
    ///
    /// Aggregates that were saved since then hold a version that no longer exists: load them anew.
    /// It also mends the unit of work after a failed write since then.
    ///
    /// # Errors
    /// [`Error::SavepointClosed`] when it was released or an outer one was rolled back,
    /// [`Error::Database`] when the statement fails.
    ///
    /// # Cancel safety
    /// See [`UnitOfWork`].
    pub async fn rollback_to(&mut self, savepoint: Savepoint) -> Result<(), Error> {
        let (place, events) = self.open_savepoint(&savepoint)?;
        self.broken = true;
        drop(self.stage.take_rows());
        self.stage.truncate_events(events);
        self.savepoints.truncate(place);
        self.run_savepoint("ROLLBACK TO SAVEPOINT", savepoint.0)
            .await?;
        self.run_savepoint("RELEASE SAVEPOINT", savepoint.0).await?;
        Ok(())
    }

    /// Keeps everything since the savepoint and forgets the mark.
    ///
    /// # Errors
    /// [`Error::SavepointClosed`] when it was released or an outer one was rolled back, and as
    /// [`connection`](Self::connection).
    ///
    /// # Cancel safety
    /// See [`UnitOfWork`].
    pub async fn release(&mut self, savepoint: Savepoint) -> Result<(), Error> {
        let (place, _) = self.open_savepoint(&savepoint)?;
        self.flush().await?;
        self.savepoints.truncate(place);
        self.run_savepoint("RELEASE SAVEPOINT", savepoint.0).await
    }

    async fn run_savepoint(&mut self, command: &str, number: u64) -> Result<(), Error> {
        self.broken = true;
        let connection = self.session.writer(&self.outbox).await?;
        DB::run(connection, format!("{command} outbox_savepoint_{number}"))
            .await
            .map_err(Error::database("working with a savepoint"))?;
        self.broken = false;
        Ok(())
    }

    fn open_savepoint(&self, savepoint: &Savepoint) -> Result<(usize, usize), Error> {
        self.savepoints
            .iter()
            .enumerate()
            .find(|(_, (number, _))| *number == savepoint.0)
            .map(|(place, (_, events))| (place, *events))
            .ok_or(Error::SavepointClosed)
    }
}
