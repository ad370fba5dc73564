use sqlx::Database;
use sqlx::pool::PoolConnection;

use super::outbox::Outbox;
use super::session::WriteTransaction;
use crate::store::{Backend, Error};

/// A connection of the pool where each statement stands for itself, else the one write transaction
/// of a single-writer database.
pub(crate) enum Writing<DB: Backend> {
    Connection(PoolConnection<DB>),
    Turn(WriteTransaction<DB>),
}

impl<DB: Backend> Writing<DB> {
    pub(crate) fn connection(&mut self) -> &mut <DB as Database>::Connection {
        match self {
            Self::Connection(connection) => connection,
            Self::Turn(transaction) => transaction.connection(),
        }
    }

    pub(crate) async fn finish(self) -> Result<(), Error> {
        match self {
            Self::Connection(_) => Ok(()),
            Self::Turn(transaction) => transaction.commit().await,
        }
    }
}

impl<DB: Backend> Outbox<DB> {
    /// A connection of the pool.
    pub(crate) async fn connection(&self) -> Result<PoolConnection<DB>, Error> {
        let connection = self.pool().acquire().await;
        connection.map_err(Error::database("taking a connection from the pool"))
    }

    /// A connection to write with, outside of a unit of work.
    pub(crate) async fn writing(&self) -> Result<Writing<DB>, Error> {
        if DB::SINGLE_WRITER {
            return self.begin_write().await.map(Writing::Turn);
        }
        self.connection().await.map(Writing::Connection)
    }
}
