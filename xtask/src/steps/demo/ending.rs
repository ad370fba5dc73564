//! What a run came to.

use serde::Serialize;
use serde_json::Value;

use crate::report::Outcome;

/// What a run came to.
#[derive(Debug, Serialize)]
pub(super) struct Ending {
    pub(super) broker: &'static str,
    pub(super) seed: u64,
    pub(super) orders: u32,
    pub(super) seconds: f64,
    /// Each process, with how often it was killed.
    pub(super) kills: Vec<(&'static str, u32)>,
    pub(super) broker_kills: u32,
    pub(super) balanced: bool,
    /// What was wrong with the processes' ends.
    pub(super) disorderly: Vec<String>,
    pub(super) reconciliation: Value,
}

impl Ending {
    /// Whether the run proves what it is there to prove.
    pub(super) fn is_good(&self) -> bool {
        self.balanced && self.disorderly.is_empty()
    }

    /// The same for a report.
    pub(super) fn outcome(&self) -> Outcome {
        let kills: u32 = self.kills.iter().map(|(_, kills)| kills).sum();
        let duplicates = self.reconciliation.get("duplicates_absorbed");
        let broker = match self.broker_kills {
            0 => "",
            _ => " and one of the broker",
        };
        let text = format!(
            "{} orders, {kills} kills{broker}, {:.1} s, {} duplicates absorbed (--seed {})",
            self.orders,
            self.seconds,
            duplicates.unwrap_or(&Value::Null),
            self.seed
        );
        match self.is_good() {
            true => Outcome::Passed(text),
            false => Outcome::Failed(format!(
                "it does not balance: {text}\n{:#}",
                self.reconciliation
            )),
        }
    }
}
