//! Real brokers for tests: each kind's kit, and one suite that all of them pass.

mod kit;
#[cfg(feature = "nats")]
mod nats;
pub mod suite;

pub use kit::{PlainMessage, Tap, TestBroker};
#[cfg(feature = "nats")]
pub use nats::Nats;
