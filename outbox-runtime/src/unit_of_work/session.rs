use std::ops::DerefMut;

use sqlx::pool::PoolConnection;
use sqlx::{Connection as _, Transaction};
use tokio::sync::OwnedSemaphorePermit;

use super::outbox::Outbox;
use crate::store::{Backend, Error};

/// What a unit of work holds of the database.
pub(crate) enum Session<'a, DB: Backend> {
    /// Nothing yet.
    Idle,
    /// A connection that only read.
    Reading(PoolConnection<DB>),
    /// A transaction of its own.
    Transaction(WriteTransaction<DB>),
    /// A transaction of the user's.
    Joined(&'a mut DB::Connection),
}

/// A transaction that writes, with the turn among the writers where the database has only one.
pub(crate) struct WriteTransaction<DB: Backend> {
    // Fields drop in order: the turn is given on when the transaction is over.
    transaction: Transaction<'static, DB>,
    _turn: Option<OwnedSemaphorePermit>,
}

impl<DB: Backend> WriteTransaction<DB> {
    pub(crate) fn connection(&mut self) -> &mut DB::Connection {
        &mut self.transaction
    }

    pub(crate) async fn commit(self) -> Result<(), Error> {
        self.transaction
            .commit()
            .await
            .map_err(Error::database("committing"))
    }

    /// Commits, if the transaction still stands where that is to be `checked`. Who wants to `keep` the
    /// connection gets it back with the next transaction begun, in the same turn.
    pub(crate) async fn end(mut self, keep: bool, checked: bool) -> Result<Option<Self>, Error> {
        self.require_open()?;
        let committing = Error::database("committing");
        if keep {
            let is_begun = DB::commit_and_begin(&mut self.transaction, checked).await;
            let is_begun = is_begun.map_err(committing)?;
            return Ok(Some(self).filter(|_| is_begun));
        }
        let ended = match checked {
            true => DB::commit_checked(self.transaction).await,
            false => self.transaction.commit().await,
        };
        ended.map(|()| None).map_err(committing)
    }

    /// Fails where sqlx has taken the transaction back: a savepoint that fails to begin, or is
    /// cancelled meanwhile, makes it send a ROLLBACK for all.
    pub(crate) fn require_open(&self) -> Result<(), Error> {
        if self.transaction.is_in_transaction() {
            return Ok(());
        }
        let text =
            "the transaction is over: a savepoint that could not be begun has taken all back";
        Err(Error::database("committing")(sqlx::Error::Protocol(
            text.to_owned(),
        )))
    }

    pub(crate) async fn rollback(self) -> Result<(), Error> {
        self.transaction
            .rollback()
            .await
            .map_err(Error::database("rolling back"))
    }
}

impl<DB: Backend> Outbox<DB> {
    /// Begins a write transaction, in turn where the database has one writer.
    pub(crate) async fn begin_write(&self) -> Result<WriteTransaction<DB>, Error> {
        let turn = self.turn().await?;
        let transaction = DB::begin(self.pool())
            .await
            .map_err(Error::database("beginning a transaction"))?;
        Ok(WriteTransaction {
            transaction,
            _turn: turn,
        })
    }
}

impl<DB: Backend> Session<'_, DB> {
    /// A connection to read with.
    pub(crate) async fn reader(
        &mut self,
        outbox: &Outbox<DB>,
    ) -> Result<&mut DB::Connection, Error> {
        if let Self::Idle = self {
            let connection = outbox.connection().await?;
            *self = Self::Reading(connection);
        }
        self.connection()
    }

    /// The connection of an open transaction.
    pub(crate) async fn writer(
        &mut self,
        outbox: &Outbox<DB>,
    ) -> Result<&mut DB::Connection, Error> {
        if let Self::Idle | Self::Reading(_) = self {
            // The connection goes back before the transaction takes one, so that a pool of one
            // is enough.
            *self = Self::Idle;
            *self = Self::Transaction(outbox.begin_write().await?);
        }
        self.connection()
    }

    pub(crate) fn in_transaction(&self) -> bool {
        matches!(self, Self::Transaction(_) | Self::Joined(_))
    }

    fn connection(&mut self) -> Result<&mut DB::Connection, Error> {
        match self {
            Self::Idle => Err(Error::MustRollBack),
            Self::Reading(connection) => Ok(connection.deref_mut()),
            Self::Transaction(transaction) => Ok(transaction.connection()),
            Self::Joined(connection) => Ok(connection),
        }
    }
}
