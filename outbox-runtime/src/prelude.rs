//! What most modules of a service need: `use outbox_runtime::prelude::*;`.

pub use crate::app::App;
pub use crate::broker::InProcessBroker;
pub use crate::domain::{
    Aggregate, AggregateRoot, DomainEvent, Envelope, MessageContext, Metadata, Raises,
};
pub use crate::handler::{Classify, FailureKind, HandlerError, State};
pub use crate::store::{Backend, Stores};
pub use crate::typed_id;
pub use crate::unit_of_work::{Outbox, UnitOfWork};
pub use outbox_macros::{aggregate, domain_event, idempotent_handler, value_object};
