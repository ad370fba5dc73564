use std::collections::BTreeSet;
use std::num::NonZeroU16;
use std::sync::Arc;

use async_trait::async_trait;

use super::delivery::Delivery;
use super::error::BrokerError;

/// What a consumer wants to receive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Subscription {
    /// The consumer group: each message goes to one member of each group.
    pub group: String,
    /// The wire names of the events that the group wants.
    pub event_types: BTreeSet<String>,
    /// Which partition to read, at a broker whose partitions are leased ([`Sharing::Leased`]).
    pub partition: Option<u16>,
}

/// How a group's messages are shared out among its members, each ordering key to one at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Sharing {
    /// By the broker: each member subscribes once and gets its part.
    #[default]
    ByBroker,
    /// By leases in the consumers' database: the broker has so many partitions, numbered from 0,
    /// all messages of an ordering key are in one of them, and each partition is subscribed to
    /// by the member that has leased it. While a lease moves, two members may read one partition
    /// for a moment; that costs duplicates, which the inbox absorbs, and not the order.
    Leased {
        /// How many: more than there will ever be instances.
        partitions: NonZeroU16,
    },
}

impl Subscription {
    /// A subscription of `group` to the named events.
    pub fn new(
        group: impl Into<String>,
        event_types: impl IntoIterator<Item = impl Into<String>>,
    ) -> Self {
        Self {
            group: group.into(),
            event_types: event_types.into_iter().map(Into::into).collect(),
            partition: None,
        }
    }

    /// The same for one partition.
    #[must_use]
    pub fn of_partition(&self, partition: u16) -> Self {
        Self {
            partition: Some(partition),
            ..self.clone()
        }
    }
}

/// Opens subscriptions at a broker.
#[async_trait]
pub trait Subscriber: Send + Sync {
    /// How a group's messages are shared out among its members. By the broker unless told.
    fn sharing(&self) -> Sharing {
        Sharing::ByBroker
    }

    /// Joins the group and starts to receive.
    ///
    /// Whatever the group has not acknowledged yet is delivered again, to this member or another.
    ///
    /// # Errors
    /// [`BrokerError`] when the broker is not reachable or refuses; the caller tries again later.
    ///
    /// # Cancel safety
    /// A dropped call leaves no member behind that would receive messages.
    async fn subscribe(
        &self,
        subscription: Subscription,
    ) -> Result<Box<dyn Deliveries>, BrokerError>;
}

/// The messages of one subscription.
#[async_trait]
pub trait Deliveries: Send {
    /// The next message, as soon as there is one; `None` once the subscription has ended.
    ///
    /// Messages of one ordering key come in the broker's order. Several may be unacknowledged at
    /// a time. Dropping the `Deliveries` leaves the group; what is not acknowledged by then is
    /// delivered again.
    ///
    /// # Errors
    /// [`BrokerError`] when the connection broke. The caller subscribes anew.
    ///
    /// # Cancel safety
    /// A dropped call loses no message: what had arrived comes with the next call.
    async fn next(&mut self) -> Result<Option<Delivery>, BrokerError>;

    /// What keeps messages from coming although the subscription stands, if the adapter knows: a
    /// connection that it makes anew by itself, say. The consumer asks every second while it waits,
    /// and tells it in its health.
    fn trouble(&self) -> Option<String> {
        None
    }
}

#[async_trait]
impl<S: Subscriber + ?Sized> Subscriber for Arc<S> {
    fn sharing(&self) -> Sharing {
        (**self).sharing()
    }

    async fn subscribe(
        &self,
        subscription: Subscription,
    ) -> Result<Box<dyn Deliveries>, BrokerError> {
        (**self).subscribe(subscription).await
    }
}
