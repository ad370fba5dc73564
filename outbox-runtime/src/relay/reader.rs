use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use sqlx::pool::PoolConnection;
use tokio::time::{Instant, sleep_until};

use crate::error_text;
use crate::store::{Backend, Error, LogRead, LogRequest};
use crate::unit_of_work::Outbox;

/// How long a connection may wait for the next read before the pool gets it back.
const LONGEST_IDLE: Duration = Duration::from_millis(50);
/// How long it may go from read to read: the pool's own hooks and lifetimes are to have their say.
const LONGEST_KEPT: Duration = Duration::from_secs(1);

pub(super) const READING: &str = "reading the outbox";

/// Reads the log, on one connection from read to read while they follow each other closely: without
/// the pool's two looks whether it still lives, which take as long as a small read does.
///
/// It is kept only where the pool has another one for whoever wants it.
#[derive(Debug)]
pub(super) struct Reader<DB: Backend> {
    outbox: Outbox<DB>,
    queries: Arc<DB::RelayQueries>,
    kept: Arc<Mutex<Option<Kept<DB>>>>,
}

#[derive(Debug)]
struct Kept<DB: Backend> {
    connection: PoolConnection<DB>,
    /// When it came from the pool.
    since: Instant,
    /// When the pool gets it back.
    until: Instant,
}

impl<DB: Backend> Clone for Reader<DB> {
    fn clone(&self) -> Self {
        Self {
            outbox: self.outbox.clone(),
            queries: Arc::clone(&self.queries),
            kept: Arc::clone(&self.kept),
        }
    }
}

impl<DB: Backend> Reader<DB> {
    pub(super) fn new(outbox: Outbox<DB>, queries: Arc<DB::RelayQueries>) -> Self {
        Self {
            outbox,
            queries,
            kept: Arc::default(),
        }
    }

    /// Reads once more on a connection that the pool has looked at, if one that was kept fails.
    ///
    /// # Cancel safety
    /// A dropped read gives its connection back to the pool.
    pub(super) async fn read(&self, request: &LogRequest<'_>) -> Result<LogRead, Error> {
        let kept = lock(&self.kept).take();
        let is_good =
            |kept: &Kept<DB>| kept.until > Instant::now() && !self.outbox.pool().is_closed();
        if let Some(mut kept) = kept.filter(is_good) {
            let read = DB::read_log(&mut kept.connection, &self.queries, request).await;
            match read {
                Ok(read) => {
                    self.keep(kept.connection, kept.since);
                    return Ok(read);
                }
                Err(error) => {
                    let reason = error_text::of_error(&Error::database(READING)(error));
                    tracing::debug!(%reason, "a connection that was kept failed; another one reads");
                }
            }
        }
        let since = Instant::now();
        let mut connection = self.outbox.connection().await?;
        let read = DB::read_log(&mut connection, &self.queries, request)
            .await
            .map_err(Error::database(READING))?;
        self.keep(connection, since);
        Ok(read)
    }

    fn keep(&self, connection: PoolConnection<DB>, since: Instant) {
        let pool = self.outbox.pool();
        let has_others = pool.num_idle() > 0 || pool.size() < pool.options().get_max_connections();
        // SQLite has nothing to save here: it has no round trips.
        if DB::SINGLE_WRITER || !has_others || pool.is_closed() {
            return;
        }
        let until = (since + LONGEST_KEPT).min(Instant::now() + LONGEST_IDLE);
        *lock(&self.kept) = Some(Kept {
            connection,
            since,
            until,
        });
        // Not by the relay itself: it may be waiting for a connection of the same pool.
        let kept = Arc::downgrade(&self.kept);
        tokio::spawn(async move {
            sleep_until(until).await;
            if let Some(kept) = kept.upgrade() {
                drop(lock(&kept).take_if(|kept| kept.until <= until));
            }
        });
    }
}

fn lock<DB: Backend>(kept: &Mutex<Option<Kept<DB>>>) -> MutexGuard<'_, Option<Kept<DB>>> {
    // Nothing panics while the lock is held; if it did, the connection would still be whole.
    kept.lock().unwrap_or_else(PoisonError::into_inner)
}
