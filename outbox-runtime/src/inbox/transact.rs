use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures_util::FutureExt;

use super::failure::Failure;
use super::handlers::Handler;
use super::parking::waiting;
use crate::domain::{Message, MessageContext};
use crate::fault::{self, Point};
use crate::handler::{HandlerCall, States};
use crate::store::{Backend, Claim, Claimed, Error, Parked, TakenOut};
use crate::unit_of_work::{Outbox, WriteTransaction};

/// Gives a message its effect for one consumer: inbox row, state change and events in one
/// transaction.
pub(super) struct Transactor<DB: Backend> {
    outbox: Outbox<DB>,
    states: Arc<States>,
    queries: Arc<DB::InboxQueries>,
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
    pub(super) const fn new(
        outbox: Outbox<DB>,
        states: Arc<States>,
        queries: Arc<DB::InboxQueries>,
    ) -> Self {
        Self {
            outbox,
            states,
            queries,
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
            let transaction = self.outbox.begin_write().await;
            let transaction = transaction.map_err(|error| Failure::of_store(&error))?;
            let lane = message.metadata.lane();
            self.transact(transaction, handler, message, Some(&lane))
                .await
        })
        .await
    }

    /// Takes out a parked message that is due; `None` if another instance has it.
    pub(super) async fn take_out(&self, id: i64) -> Result<Option<Taken<DB>>, Error> {
        let mut transaction = self.outbox.begin_write().await?;
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
        catching_panics(self.transact(transaction, handler, message, None)).await
    }

    async fn transact(
        &self,
        mut transaction: WriteTransaction<DB>,
        handler: Handler<DB>,
        message: &Message,
        lane: Option<&str>,
    ) -> Result<Effect, Failure> {
        let idempotency_key =
            (handler.registration.key)(message).map_err(|error| Failure::of_handler(&error))?;
        let claim = Claim {
            consumer: handler.registration.consumer,
            idempotency_key: &idempotency_key,
            lane,
            metadata: &message.metadata,
        };
        let store = |error| Failure::of_store(&error);
        let connection = transaction.connection();
        match DB::claim(connection, &self.queries, claim)
            .await
            .map_err(store)?
        {
            Claimed::First => {}
            Claimed::Duplicate => {
                // A parked message whose effect is there already is parked no longer.
                transaction.commit().await.map_err(store)?;
                return Ok(Effect::Duplicate);
            }
            Claimed::Held => {
                let behind = waiting(&handler, Some(&idempotency_key), message);
                let parked = DB::set_aside(connection, &self.queries, behind)
                    .await
                    .map_err(store)?;
                transaction.commit().await.map_err(store)?;
                return Ok(match parked {
                    Parked::Now => Effect::Parked,
                    Parked::Before | Parked::Handled => Effect::Duplicate,
                });
            }
        }
        let passed = fault::at(Point::BeforeHandle).await;
        passed.map_err(|fault| store(Error::database("handling a message")(fault.into())))?;
        // Made from the message each time, so every attempt's events carry the same trace.
        let context = MessageContext::caused_by(&message.metadata);
        let mut unit_of_work = self.outbox.begin_within(transaction, context);
        let call = HandlerCall {
            message,
            unit_of_work: &mut unit_of_work,
            states: &self.states,
        };
        (handler.entry.call)(call)
            .await
            .map_err(|error| Failure::of_handler(&error))?;
        unit_of_work
            .commit()
            .await
            .map_err(|error| Failure::of_commit(&error))?;
        Ok(Effect::Committed)
    }
}

/// Nothing that a panic left half done is used again: the unit of work is dropped, and what the
/// states share between their clones is the user's.
async fn catching_panics(
    attempt: impl Future<Output = Result<Effect, Failure>>,
) -> Result<Effect, Failure> {
    AssertUnwindSafe(attempt)
        .catch_unwind()
        .await
        .unwrap_or_else(|panic| Err(Failure::of_panic(&*panic)))
}
