use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::sync::watch;

use super::breaker::Circuit;
use crate::store::Backlog;
use crate::telemetry::metrics::Metrics;

/// What a relay has done since it started.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RelayCounts {
    /// Messages that the publisher confirmed. After a crash some are published again and count
    /// again.
    pub published: u64,
    /// Messages that were parked, those behind the failing ones included.
    pub parked: u64,
    /// Messages that are dead: nobody tries them again before an operator says so.
    pub dead: u64,
    /// How often the circuit to the broker opened, see [`Circuit`].
    pub circuit_opened: u64,
}

/// Counts for [`RelayCounts`], the latest figures, and the metrics; clones count together.
#[derive(Debug, Clone)]
pub(super) struct Counters {
    metrics: Metrics,
    published: Arc<AtomicU64>,
    parked: Arc<AtomicU64>,
    dead: Arc<AtomicU64>,
    circuit_opened: Arc<AtomicU64>,
    backlog: Arc<watch::Sender<Option<Backlog>>>,
    circuit: Arc<watch::Sender<Circuit>>,
}

impl Counters {
    pub(super) fn new(metrics: Metrics) -> Self {
        Self {
            metrics,
            published: Arc::default(),
            parked: Arc::default(),
            dead: Arc::default(),
            circuit_opened: Arc::default(),
            backlog: Arc::default(),
            circuit: Arc::default(),
        }
    }

    pub(super) fn counts(&self) -> RelayCounts {
        RelayCounts {
            published: self.published.load(Ordering::Relaxed),
            parked: self.parked.load(Ordering::Relaxed),
            dead: self.dead.load(Ordering::Relaxed),
            circuit_opened: self.circuit_opened.load(Ordering::Relaxed),
        }
    }

    pub(super) fn published(&self, messages: usize) {
        self.published.fetch_add(messages as u64, Ordering::Relaxed);
        self.metrics.published(messages);
    }

    pub(super) fn parked(&self, messages: usize) {
        self.parked.fetch_add(messages as u64, Ordering::Relaxed);
        self.metrics.parked_in_relay(messages);
    }

    pub(super) fn dead(&self, messages: usize) {
        self.dead.fetch_add(messages as u64, Ordering::Relaxed);
        self.metrics.dead_in_relay(messages);
    }

    pub(super) fn circuit_opened(&self) {
        self.circuit_opened.fetch_add(1, Ordering::Relaxed);
        self.metrics.circuit_opened();
    }

    pub(super) fn circuit(&self, circuit: Circuit) {
        self.metrics.circuit(match circuit {
            Circuit::Closed => 0,
            Circuit::HalfOpen { .. } => 1,
            Circuit::Open { .. } => 2,
        });
        self.circuit.send_replace(circuit);
    }

    pub(super) fn latest_circuit(&self) -> Circuit {
        *self.circuit.borrow()
    }

    pub(super) fn backlog(&self, backlog: Backlog) {
        let age = backlog.oldest.map(|oldest| oldest.age);
        self.metrics.backlog(
            backlog.pending,
            age.unwrap_or_default(),
            backlog.watermark_lag,
        );
        self.backlog.send_replace(Some(backlog));
    }

    pub(super) fn latest_backlog(&self) -> Option<Backlog> {
        *self.backlog.borrow()
    }
}
