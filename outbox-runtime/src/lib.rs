//! Domain events that are never lost.
//!
//! Annotate domain types and handlers; the runtime keeps three promises without further code:
//!
//! 1. **Commit.** An aggregate's change and the events that it raised commit in one local
//!    transaction, or not at all.
//! 2. **Delivery.** A relay carries committed events to the broker at least once, in each
//!    aggregate's own order.
//! 3. **Effect.** A handler's inbox row, its state change and the events that it raises commit in
//!    one transaction, so a duplicate has no second effect.
//!
//! Start with [`Outbox`], [`UnitOfWork`] and the attributes [`macro@aggregate`],
//! [`macro@domain_event`] and [`macro@idempotent_handler`].
#![deny(missing_docs)]
// Without a backend the ports have nobody who implements them; the crate still has to build, so
// that a library of domain types can depend on it and leave the database to the program.
#![cfg_attr(
    not(any(feature = "sqlite", feature = "postgres")),
    allow(dead_code, unused_imports)
)]

#[doc(hidden)]
pub mod __private;
pub mod app;
pub mod backoff;
pub mod broker;
mod clock;
pub mod dead_letters;
pub mod domain;
mod error_text;
#[cfg(feature = "fault-points")]
pub mod fault;
#[cfg(not(feature = "fault-points"))]
#[allow(unreachable_pub, reason = "with its feature it is public")]
mod fault;
pub mod handler;
pub mod health;
pub mod inbox;
pub mod prelude;
mod problem;
pub mod relay;
pub mod retention;
pub mod retry;
pub mod store;
pub mod telemetry;
mod unit_of_work;

pub use app::{App, AppError};
pub use clock::Clock;
pub use domain::{
    Aggregate, AggregateRef, AggregateRoot, ContextError, DecodeError, DomainEvent, EncodeError,
    Envelope, KeyWriter, Message, MessageContext, MessageId, Metadata, Raises,
};
pub use handler::{Classify, FailureKind, HandlerError, State};
pub use outbox_macros::{aggregate, domain_event, idempotent_handler, value_object};
pub use problem::Problem;
pub use store::{
    Backend, CustomPersistence, Error, Migration, Persist, RowLock, Stores, ValueObject,
};
pub use unit_of_work::{Outbox, OutboxBuilder, Savepoint, UnitOfWork, is_version_conflict};
