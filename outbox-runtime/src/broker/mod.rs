//! Ports to message brokers: what a relay publishes to and a consumer reads from.
//!
//! An adapter implements [`Publisher`], [`Subscriber`] or both ([`Broker`]). The contracts stand at
//! the traits: they are what the framework's promises rest on, and they are short.

mod delivery;
mod error;
mod in_process;
mod publisher;
mod subscriber;

pub use delivery::{Acknowledge, Delivery};
pub use error::{BoxError, BrokerError, PublishError};
pub use in_process::InProcessBroker;
pub use publisher::Publisher;
pub use subscriber::{Deliveries, Sharing, Subscriber, Subscription};

/// A broker that both takes and delivers messages.
///
/// Whatever is a [`Publisher`] and a [`Subscriber`] is one; there is nothing to implement.
pub trait Broker: Publisher + Subscriber {}

impl<T: Publisher + Subscriber + ?Sized> Broker for T {}
