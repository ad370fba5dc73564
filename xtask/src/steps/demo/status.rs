//! What the example says of itself.

use serde::Deserialize;

/// The example's `status --json`.
#[derive(Debug, Default, Clone, PartialEq, Deserialize)]
pub(super) struct Status {
    pub(super) drained: bool,
    pub(super) orders: Orders,
    pub(super) services: Vec<Service>,
}

#[derive(Debug, Default, Clone, PartialEq, Eq, Deserialize)]
pub(super) struct Orders {
    pub(super) placed: u64,
    pub(super) confirmed: u64,
    pub(super) cancelled: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(super) struct Service {
    pub(super) name: String,
    pub(super) events: u64,
    pub(super) published: u64,
    pub(super) to_handle: u64,
    pub(super) handled: u64,
    pub(super) duplicates: u64,
    pub(super) parked_in_outbox: u64,
    pub(super) parked_in_inbox: u64,
}

impl Status {
    /// What has to grow for the run to count as moving.
    pub(super) fn moved(&self) -> (u64, u64, u64) {
        let sum = |of: fn(&Service) -> u64| self.services.iter().map(of).sum::<u64>();
        (
            self.orders.placed,
            sum(|one| one.published),
            sum(|one| one.handled),
        )
    }

    /// The sum of a figure over all services.
    pub(super) fn sum(&self, of: fn(&Service) -> u64) -> u64 {
        self.services.iter().map(of).sum()
    }
}
