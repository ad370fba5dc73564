//! The vocabulary of domain-driven design: pure types without I/O, SQL or a clock.

mod aggregate;
mod context;
mod envelope;
mod event;
mod key;
mod shard;
mod trace;

pub use aggregate::{Aggregate, AggregateRoot, Raises, Staged, UnsavedEvents};
pub use context::{ContextError, MessageContext};
pub use envelope::{AggregateRef, Envelope, Message, MessageId, Metadata};
pub use event::{AnyEvent, DecodeError, DomainEvent, EncodeError};
pub use key::{KeyError, KeyWriter, MAX_KEY_BYTES};
#[cfg(any(feature = "nats", feature = "rabbitmq", feature = "redis"))]
pub(crate) use shard::part_of;
pub use shard::{SHARDS, Shard, shard_of};
pub(crate) use trace::TraceContext;
