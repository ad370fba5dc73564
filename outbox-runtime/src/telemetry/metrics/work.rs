use super::recorder::{Metrics, Timer};
use super::table::{COMMIT_DURATION, EVENTS, REMOVED};

impl Metrics {
    /// The commit of a unit of work with so many events ended, with an outcome that the table has.
    pub(crate) fn commit(&self, outcome: &'static str, events: usize, timer: &Timer) {
        self.series(&COMMIT_DURATION, &[("outcome", outcome)])
            .record(timer.elapsed());
        if outcome == "committed" {
            self.add(&EVENTS, &[], events as u64);
        }
    }

    /// Retention removed rows of a table.
    pub(crate) fn removed(&self, table: &'static str, rows: u64) {
        self.add(&REMOVED, &[("table", table)], rows);
    }
}
