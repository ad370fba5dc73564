use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use futures_util::FutureExt;

use super::failure::Failure;
use super::handlers::Handler;
use super::parking::waiting;
use super::spare::{Open, Spare, Uses, give_back};
use crate::domain::{Message, MessageContext};
use crate::fault::{self, Point};
use crate::handler::{HandlerCall, States};
use crate::store::{Backend, Claim, Claimed, Error, Parked, TakenOut};
use crate::unit_of_work::{Outbox, UnitOfWork, WriteTransaction};

/// Gives a message its effect for one consumer: inbox row, state change and events in one
/// transaction.
pub(super) struct Transactor<DB: Backend> {
    pub(super) outbox: Outbox<DB>,
    pub(super) states: Arc<States>,
    pub(super) queries: Arc<DB::InboxQueries>,
    pub(super) spare: Arc<Spare<DB>>,
    /// The last message was a duplicate. They come in runs, after a crash or a broken connection to
    /// the broker, so the next is looked up before it is claimed: that answers for less.
    expects_duplicates: AtomicBool,
}

/// How an attempt ended well.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Effect {
    /// It is committed now.
    Committed,
    /// It was there already.
    Duplicate,
    /// The message waits behind a parked one of its lane.
    Parked,
}

impl Effect {
    /// What a span says of it.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Committed => "committed",
            Self::Duplicate => "duplicate",
            Self::Parked => "parked",
        }
    }
}

/// A parked message that was taken out, and the transaction that did it.
pub(super) struct Taken<DB: Backend> {
    pub(super) transaction: WriteTransaction<DB>,
    pub(super) parked: TakenOut,
}

impl<DB: Backend> Transactor<DB> {
    pub(super) fn new(
        outbox: Outbox<DB>,
        states: Arc<States>,
        queries: Arc<DB::InboxQueries>,
        spare: Arc<Spare<DB>>,
    ) -> Self {
        Self {
            outbox,
            states,
            queries,
            spare,
            expects_duplicates: AtomicBool::new(false),
        }
    }

    /// Makes an attempt with a message that came from the broker. Whatever goes wrong, a panic
    /// included, leaves nothing behind.
    pub(super) async fn attempt(
        &self,
        handler: Handler<DB>,
        message: &Message,
    ) -> Result<Effect, Failure> {
        catching_panics(async {
            let key = key_of(handler, message)?;
            let lane = message.metadata.lane();
            let claim = claim_of(handler, message, &key, Some(&lane));
            let (open, claimed, sees_on) = self.claim(claim).await?;
            let Open { transaction, uses } = open;
            let is_duplicate = claimed == Claimed::Duplicate;
            self.expects_duplicates
                .store(is_duplicate, Ordering::Relaxed);
            if is_duplicate {
                // Nothing was written, so there is nothing to commit.
                match sees_on {
                    true => self.spare.keep_unused(transaction, uses).await,
                    false => give_back(transaction).await,
                }
                return Ok(Effect::Duplicate);
            }
            let transact = self.transact(transaction, handler, message, &key, claimed, Some(uses));
            transact.await
        })
        .await
    }

    /// Claims the message on a connection that is at hand, or on one from the pool. Says besides whether
    /// the transaction can serve another message if this one is a duplicate.
    async fn claim(&self, claim: Claim<'_>) -> Result<(Open<DB>, Claimed, bool), Failure> {
        let store = |error| Failure::of_store(&error);
        let mut open = self.spare.begin().await.map_err(store)?;
        let mut claimed = self.claim_on(&mut open.transaction, claim).await;
        if claimed.is_err() && open.uses.is_kept() {
            // The pool would have noticed that the connection has died.
            let instead = self.spare.begin_instead(open.transaction);
            open = instead.await.map_err(store)?;
            claimed = self.claim_on(&mut open.transaction, claim).await;
        }
        let (claimed, sees_on) = claimed.map_err(store)?;
        Ok((open, claimed, sees_on))
    }

    async fn claim_on(
        &self,
        transaction: &mut WriteTransaction<DB>,
        claim: Claim<'_>,
    ) -> Result<(Claimed, bool), Error> {
        let connection = transaction.connection();
        if self.expects_duplicates.load(Ordering::Relaxed) {
            let (is_handled, sees_on) = DB::is_handled(connection, &self.queries, claim).await?;
            if is_handled {
                return Ok((Claimed::Duplicate, sees_on));
            }
        }
        let claimed = DB::claim(connection, &self.queries, claim).await?;
        Ok((claimed, false))
    }

    /// Takes out a parked message that is due; `None` if another instance has it.
    pub(super) async fn take_out(&self, id: i64) -> Result<Option<Taken<DB>>, Error> {
        let mut transaction = self.spare.begin_looked_at().await?;
        match DB::take_out(transaction.connection(), &self.queries, id).await? {
            Some(parked) => Ok(Some(Taken {
                transaction,
                parked,
            })),
            None => transaction.rollback().await.map(|()| None),
        }
    }

    /// Makes an attempt with a message that the transaction has taken out of the parked ones.
    pub(super) async fn attempt_parked(
        &self,
        transaction: WriteTransaction<DB>,
        handler: Handler<DB>,
        message: &Message,
    ) -> Result<Effect, Failure> {
        catching_panics(async {
            let mut transaction = transaction;
            let key = key_of(handler, message)?;
            let claim = claim_of(handler, message, &key, None);
            let claimed = DB::claim(transaction.connection(), &self.queries, claim)
                .await
                .map_err(|error| Failure::of_store(&error))?;
            self.transact(transaction, handler, message, &key, claimed, None)
                .await
        })
        .await
    }

    /// Does what the claim says. The connection is kept if its `uses` are given and somebody waits for
    /// it.
    async fn transact(
        &self,
        mut transaction: WriteTransaction<DB>,
        handler: Handler<DB>,
        message: &Message,
        key: &str,
        claimed: Claimed,
        uses: Option<Uses>,
    ) -> Result<Effect, Failure> {
        let store = |error| Failure::of_store(&error);
        match claimed {
            Claimed::First => {}
            Claimed::Duplicate => {
                // A parked message whose effect is there already is parked no longer.
                transaction.commit().await.map_err(store)?;
                return Ok(Effect::Duplicate);
            }
            Claimed::Held => {
                let effect = self
                    .set_aside(&mut transaction, handler, message, key)
                    .await?;
                transaction.commit().await.map_err(store)?;
                return Ok(effect);
            }
        }
        let mut unit_of_work = self.begin_handling(transaction, message).await?;
        self.call(handler, message, &mut unit_of_work).await?;
        let uses = uses.filter(|&uses| self.spare.wants(uses));
        let kept = unit_of_work
            .end(uses.is_some())
            .await
            .map_err(|error| Failure::of_commit(&error))?;
        if let (Some(transaction), Some(uses)) = (kept, uses) {
            self.spare.keep(transaction, uses);
        }
        Ok(Effect::Committed)
    }

    /// Parks a message behind another of its lane.
    pub(super) async fn set_aside(
        &self,
        transaction: &mut WriteTransaction<DB>,
        handler: Handler<DB>,
        message: &Message,
        key: &str,
    ) -> Result<Effect, Failure> {
        let behind = waiting(&handler, Some(key), message);
        let parked = DB::set_aside(transaction.connection(), &self.queries, behind)
            .await
            .map_err(|error| Failure::of_store(&error))?;
        Ok(match parked {
            Parked::Now => Effect::Parked,
            Parked::Before | Parked::Handled => Effect::Duplicate,
        })
    }

    /// The unit of work of a handler whose message is claimed in the transaction.
    pub(super) async fn begin_handling(
        &self,
        transaction: WriteTransaction<DB>,
        message: &Message,
    ) -> Result<UnitOfWork<'static, DB>, Failure> {
        fault::at(Point::BeforeHandle).await.map_err(|fault| {
            Failure::of_store(&Error::database("handling a message")(fault.into()))
        })?;
        // Made from the message each time, so every attempt's events carry the same trace.
        let context = MessageContext::caused_by(&message.metadata);
        Ok(self.outbox.begin_within(transaction, context))
    }

    pub(super) async fn call(
        &self,
        handler: Handler<DB>,
        message: &Message,
        unit_of_work: &mut UnitOfWork<'static, DB>,
    ) -> Result<(), Failure> {
        let call = HandlerCall {
            message,
            unit_of_work,
            states: &self.states,
        };
        (handler.entry.call)(call)
            .await
            .map_err(|error| Failure::of_handler(&error))
    }
}

/// The consumer's key for the message.
pub(super) fn key_of<DB: Backend>(
    handler: Handler<DB>,
    message: &Message,
) -> Result<String, Failure> {
    (handler.registration.key)(message).map_err(|error| Failure::of_handler(&error))
}

pub(super) const fn claim_of<'a, DB: Backend>(
    handler: Handler<DB>,
    message: &'a Message,
    key: &'a str,
    lane: Option<&'a str>,
) -> Claim<'a> {
    Claim {
        consumer: handler.registration.consumer,
        idempotency_key: key,
        lane,
        metadata: &message.metadata,
    }
}

/// Nothing that a panic left half done is used again: the unit of work is dropped, and what the
/// states share between their clones is the user's.
pub(super) async fn catching_panics<T>(
    attempt: impl Future<Output = Result<T, Failure>>,
) -> Result<T, Failure> {
    AssertUnwindSafe(attempt)
        .catch_unwind()
        .await
        .unwrap_or_else(|panic| Err(Failure::of_panic(&*panic)))
}
