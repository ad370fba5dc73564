use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use super::turns::Turns;
use crate::store::{Backend, Error};
use crate::unit_of_work::{Outbox, WriteTransaction};

/// How long a connection may serve one message after another before the pool gets it back, where the
/// pool has none for anybody else.
const LONGEST_IN_A_ROW: Duration = Duration::from_millis(100);
/// How long at all: the pool's own hooks and lifetimes are to have their say.
const LONGEST_KEPT: Duration = Duration::from_secs(1);
/// How old a transaction may be that a message gets. It is what the message's SQL reads as `now()`.
const OLDEST: Duration = Duration::from_millis(100);

/// Transactions that are begun and empty, each on a connection that goes from one message to the next:
/// without a way through the pool, without the pool's two looks whether it still lives, and with a
/// beginning that went along with the last commit.
///
/// One is kept only for who waits for a turn, so that none is idle here for longer than it takes to
/// hand on the turn. Where nobody waits, the connection goes back to the pool. Whoever has a turn
/// begins through here: beside the pool's last connection, or SQLite's one transaction, that lies
/// here, it would wait for itself.
pub(super) struct Spare<DB: Backend> {
    outbox: Outbox<DB>,
    turns: Arc<Turns>,
    kept: Mutex<Kept<DB>>,
}

type Kept<DB> = Vec<(WriteTransaction<DB>, Uses)>;

/// A transaction for the next message.
pub(super) struct Open<DB: Backend> {
    pub(super) transaction: WriteTransaction<DB>,
    pub(super) uses: Uses,
}

/// What is to be remembered of a connection while its transaction is used.
#[derive(Debug, Clone, Copy)]
pub(super) struct Uses {
    /// When it came from the pool.
    since: Instant,
    /// When its transaction was begun, or before.
    begun: Instant,
    is_kept: bool,
}

impl Uses {
    /// Whether the connection has come from another message, and may have died since.
    pub(super) const fn is_kept(self) -> bool {
        self.is_kept
    }
}

impl<DB: Backend> Spare<DB> {
    pub(super) fn new(outbox: Outbox<DB>, turns: Arc<Turns>) -> Self {
        Self {
            outbox,
            turns,
            kept: Mutex::default(),
        }
    }

    /// A transaction that was kept, or else a new one.
    pub(super) async fn begin(&self) -> Result<Open<DB>, Error> {
        let kept = self.lock().pop();
        self.rest().await;
        match kept {
            Some((transaction, uses)) if uses.begun.elapsed() < OLDEST => {
                Ok(Open { transaction, uses })
            }
            Some((transaction, _)) => self.begin_instead(transaction).await,
            None => self.begin_anew().await,
        }
    }

    /// A transaction for what is seldom done and should not fail for a connection that has died. One
    /// that was kept goes back first, so that this finds a connection where it was the last.
    pub(super) async fn begin_looked_at(&self) -> Result<WriteTransaction<DB>, Error> {
        let kept = self.lock().pop();
        if let Some((transaction, _)) = kept {
            give_back(transaction).await;
        }
        self.rest().await;
        Ok(self.begin_anew().await?.transaction)
    }

    /// A transaction on a connection that the pool has looked at, in place of one that is given back
    /// first: it may be the last that there is.
    pub(super) async fn begin_instead(
        &self,
        transaction: WriteTransaction<DB>,
    ) -> Result<Open<DB>, Error> {
        give_back(transaction).await;
        self.begin_anew().await
    }

    async fn begin_anew(&self) -> Result<Open<DB>, Error> {
        // Before it is begun, so that it is not taken for younger than it is.
        let begun = Instant::now();
        let transaction = self.outbox.begin_write().await?;
        let uses = Uses {
            since: begun,
            begun,
            is_kept: false,
        };
        Ok(Open { transaction, uses })
    }

    /// Whether the connection should be kept when its message is done.
    pub(super) fn wants(&self, uses: Uses) -> bool {
        let pool = self.outbox.pool();
        let most = pool.options().get_max_connections();
        let has_others = || !DB::SINGLE_WRITER && (pool.num_idle() > 0 || pool.size() < most);
        let age = uses.since.elapsed();
        self.turns.anyone_waits() && age < LONGEST_KEPT && (age < LONGEST_IN_A_ROW || has_others())
    }

    /// Keeps a transaction that was begun just now.
    pub(super) fn keep(&self, transaction: WriteTransaction<DB>, uses: Uses) {
        let uses = Uses {
            begun: Instant::now(),
            is_kept: true,
            ..uses
        };
        self.lock().push((transaction, uses));
    }

    /// Keeps a transaction in which nothing was written, if it is wanted and young; else it is rolled
    /// back.
    pub(super) async fn keep_unused(&self, transaction: WriteTransaction<DB>, uses: Uses) {
        if uses.begun.elapsed() < OLDEST && self.wants(uses) {
            let uses = Uses {
                is_kept: true,
                ..uses
            };
            self.lock().push((transaction, uses));
        } else {
            give_back(transaction).await;
        }
    }

    /// Gives all back to the pool unless somebody waits for a turn, and with it for a transaction.
    pub(super) async fn rest(&self) {
        if !self.turns.anyone_waits() {
            let kept = std::mem::take(&mut *self.lock());
            for (transaction, _) in kept {
                give_back(transaction).await;
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Kept<DB>> {
        // Nothing panics while the lock is held; if it did, the transactions would still be whole.
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Gives a transaction back in which nothing was written.
///
/// On PostgreSQL the rollback goes along with the pool's look at the connection. On SQLite the next
/// writer should not find the file locked, so it is waited for.
pub(super) async fn give_back<DB: Backend>(transaction: WriteTransaction<DB>) {
    if DB::SINGLE_WRITER {
        // There is nothing in it to lose, whether the rollback fails or not.
        let _ = transaction.rollback().await;
    }
}
