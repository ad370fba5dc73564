use std::time::Duration;

use super::recorder::{Metrics, Series};
use super::table::{
    BATCHES, CIRCUIT, CIRCUIT_OPENED, LEASE_CHANGES, OLDEST_PENDING, PENDING, PUBLISH_DELAY,
    PUBLISH_FAILURES, PUBLISH_RETRIES, PUBLISHED, RELAY_DEAD, RELAY_PARKED, SCHEDULED_DROPPED,
    SCHEDULED_MOVED, SHARDS, WATERMARK_LAG,
};

/// What happened to shards' leases.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LeaseChange {
    Claimed,
    /// Renewed after they had ended, before another instance took them.
    RenewedLate,
    Lost,
    HandedOver,
}

impl Metrics {
    pub(crate) fn published(&self, messages: usize) {
        self.add(&PUBLISHED, &[], messages as u64);
    }

    /// A call to the publisher is over.
    pub(crate) fn batch(&self) {
        self.add(&BATCHES, &[], 1);
    }

    /// Where to record when events occurred that are published now.
    pub(crate) fn publish_delay(&self) -> Series {
        self.series(&PUBLISH_DELAY, &[])
    }

    pub(crate) fn publish_failed(&self, is_transient: bool) {
        let kind = if is_transient {
            "transient"
        } else {
            "permanent"
        };
        self.add(&PUBLISH_FAILURES, &[("kind", kind)], 1);
    }

    pub(crate) fn publish_retried(&self) {
        self.add(&PUBLISH_RETRIES, &[], 1);
    }

    /// The circuit is closed (0), half-open (1) or open (2).
    pub(crate) fn circuit(&self, state: u8) {
        self.set(&CIRCUIT, &[], f64::from(state));
    }

    pub(crate) fn circuit_opened(&self) {
        self.add(&CIRCUIT_OPENED, &[], 1);
    }

    pub(crate) fn parked_in_relay(&self, messages: usize) {
        self.add(&RELAY_PARKED, &[], messages as u64);
    }

    pub(crate) fn dead_in_relay(&self, messages: usize) {
        self.add(&RELAY_DEAD, &[], messages as u64);
    }

    pub(crate) fn leases(&self, change: LeaseChange, shards: usize) {
        let change = match change {
            LeaseChange::Claimed => "claimed",
            LeaseChange::RenewedLate => "renewed_late",
            LeaseChange::Lost => "lost",
            LeaseChange::HandedOver => "handed_over",
        };
        self.add(&LEASE_CHANGES, &[("change", change)], shards as u64);
    }

    /// How many shards the instance owns.
    pub(crate) fn shards(&self, shards: usize) {
        self.set(&SHARDS, &[], as_f64(shards as u64));
    }

    /// So many scheduled events were taken, of which so many are in the log.
    pub(crate) fn scheduled_moved(&self, taken: u64, stored: u64) {
        self.add(&SCHEDULED_MOVED, &[], stored);
        self.add(&SCHEDULED_DROPPED, &[], taken.saturating_sub(stored));
    }

    /// What waits in the log: rows, the age of the oldest, and how many ids the positions lag.
    pub(crate) fn backlog(&self, rows: u64, oldest: Duration, lag: u64) {
        self.set(&PENDING, &[], as_f64(rows));
        self.set(&OLDEST_PENDING, &[], oldest.as_secs_f64());
        self.set(&WATERMARK_LAG, &[], as_f64(lag));
    }
}

/// Exact up to 2^53, beyond any number of rows that is counted.
#[expect(clippy::cast_precision_loss, reason = "see above")]
pub(super) const fn as_f64(number: u64) -> f64 {
    number as f64
}
