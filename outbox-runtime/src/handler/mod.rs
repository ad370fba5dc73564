//! How a handler is known to the program: its registration, its state and its failures.

mod failure;
mod registration;
mod state;

pub use failure::{Classify, FailureKind, HandlerError};
pub use registration::{
    AggregateRegistration, EventRegistration, HandlerCall, HandlerEntry, HandlerRegistration,
    StateRequirement,
};
pub use state::{State, States};
