use std::any::{Any, TypeId, type_name};
use std::fmt;

use futures_util::future::BoxFuture;

use super::{HandlerError, States};
use crate::domain::Message;
use crate::store::{Backend, TableMapping};
use crate::unit_of_work::UnitOfWork;

/// A handler that is linked into the program, on whichever databases it works.
///
/// `#[idempotent_handler]` submits one; an application collects them when it starts.
pub struct HandlerRegistration {
    /// The consumer's name, the first half of the inbox's key.
    pub consumer: &'static str,
    /// The name of the event.
    pub event_type: &'static str,
    /// The oldest and the newest schema version that it takes.
    pub versions: (u32, u32),
    /// Fills the key template for a message.
    pub key: fn(&Message) -> Result<String, HandlerError>,
    /// The states that it wants.
    pub states: fn() -> Vec<StateRequirement>,
    /// A [`HandlerEntry`] for each database on which it works.
    pub entries: &'static [&'static (dyn Any + Send + Sync)],
    /// The function's path.
    pub function: &'static str,
    /// Where it is written.
    pub file: &'static str,
    /// Where it is written.
    pub line: u32,
}

impl HandlerRegistration {
    /// All handlers that are linked into the program.
    pub fn all() -> impl Iterator<Item = &'static Self> {
        inventory::iter::<Self>.into_iter()
    }

    /// The handler's entry on `DB`, if it works there.
    pub fn entry<DB: Backend>(&self) -> Option<&'static HandlerEntry<DB>> {
        self.entries
            .iter()
            .find_map(|entry| entry.downcast_ref::<HandlerEntry<DB>>())
    }

    /// Whether it takes that version of its event.
    pub fn takes(&self, schema_version: u32) -> bool {
        (self.versions.0..=self.versions.1).contains(&schema_version)
    }
}

impl fmt::Debug for HandlerRegistration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HandlerRegistration")
            .field("consumer", &self.consumer)
            .field("event_type", &self.event_type)
            .field("versions", &self.versions)
            .field("function", &self.function)
            .finish_non_exhaustive()
    }
}

inventory::collect!(HandlerRegistration);

/// How a handler is called on one database.
pub struct HandlerEntry<DB: Backend> {
    /// Opens the envelope, extracts the states and calls the function.
    pub call: for<'a> fn(HandlerCall<'a, DB>) -> BoxFuture<'a, Result<(), HandlerError>>,
}

/// One call of a handler.
pub struct HandlerCall<'a, DB: Backend> {
    /// The message.
    pub message: &'a Message,
    /// The unit of work over the transaction that holds the inbox row.
    pub unit_of_work: &'a mut UnitOfWork<'static, DB>,
    /// The application's states.
    pub states: &'a States,
}

/// A state that a handler wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StateRequirement {
    /// The type.
    pub type_id: TypeId,
    /// The type's name, for the report.
    pub type_name: &'static str,
}

impl StateRequirement {
    /// The requirement of `T`.
    pub fn of<T: 'static>() -> Self {
        Self {
            type_id: TypeId::of::<T>(),
            type_name: type_name::<T>(),
        }
    }
}

/// An event type that is linked into the program; `#[domain_event]` submits one.
#[derive(Debug)]
pub struct EventRegistration {
    /// The event's name.
    pub name: &'static str,
    /// The event's version.
    pub version: u32,
    /// The Rust type.
    pub rust_type: &'static str,
    /// Where it is written.
    pub file: &'static str,
    /// Where it is written.
    pub line: u32,
}

impl EventRegistration {
    /// All events that are linked into the program.
    pub fn all() -> impl Iterator<Item = &'static Self> {
        inventory::iter::<Self>.into_iter()
    }
}

inventory::collect!(EventRegistration);

/// An aggregate with a generated persistence that is linked into the program; `#[aggregate]`
/// submits one.
#[derive(Debug)]
pub struct AggregateRegistration {
    /// The aggregate's type.
    pub aggregate_type: &'static str,
    /// Its table.
    pub table: fn() -> &'static TableMapping,
    /// The Rust type.
    pub rust_type: &'static str,
    /// Where it is written.
    pub file: &'static str,
    /// Where it is written.
    pub line: u32,
}

impl AggregateRegistration {
    /// All aggregates that are linked into the program.
    pub fn all() -> impl Iterator<Item = &'static Self> {
        inventory::iter::<Self>.into_iter()
    }
}

inventory::collect!(AggregateRegistration);
