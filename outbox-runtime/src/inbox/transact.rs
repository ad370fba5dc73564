use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures_util::FutureExt;

use super::failure::Failure;
use super::handlers::Handler;
use crate::domain::{Message, MessageContext};
use crate::handler::{HandlerCall, States};
use crate::store::{Backend, Claim};
use crate::unit_of_work::Outbox;

/// Gives a message its effect for one consumer: inbox row, state change and events in one
/// transaction.
pub(super) struct Transactor<DB: Backend> {
    outbox: Outbox<DB>,
    states: Arc<States>,
    claim_sql: String,
}

/// How an attempt ended well.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Effect {
    /// It is committed now.
    Committed,
    /// It was there already.
    Duplicate,
}

impl<DB: Backend> Transactor<DB> {
    pub(super) fn new(outbox: Outbox<DB>, states: Arc<States>) -> Self {
        Self {
            claim_sql: DB::claim_sql(outbox.names()),
            outbox,
            states,
        }
    }

    /// Makes one attempt. Whatever goes wrong, a panic included, leaves nothing behind.
    pub(super) async fn attempt(
        &self,
        handler: Handler<DB>,
        message: &Message,
    ) -> Result<Effect, Failure> {
        // Nothing that the panic left half done is used again: the unit of work is dropped, and
        // what the states share between their clones is the user's.
        AssertUnwindSafe(self.transact(handler, message))
            .catch_unwind()
            .await
            .unwrap_or_else(|panic| Err(Failure::of_panic(&*panic)))
    }

    async fn transact(&self, handler: Handler<DB>, message: &Message) -> Result<Effect, Failure> {
        let idempotency_key =
            (handler.registration.key)(message).map_err(|error| Failure::of_handler(&error))?;
        let claim = Claim {
            consumer: handler.registration.consumer,
            idempotency_key: &idempotency_key,
            metadata: &message.metadata,
        };
        let store = |error| Failure::of_store(&error);
        let mut transaction = self.outbox.begin_write().await.map_err(store)?;
        let connection = transaction.connection();
        let is_first = DB::claim(connection, &self.claim_sql, claim)
            .await
            .map_err(store)?;
        if !is_first {
            transaction.rollback().await.map_err(store)?;
            return Ok(Effect::Duplicate);
        }
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
