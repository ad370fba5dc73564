use super::inbox::named;
use super::recorder::Metrics;
use super::relay::as_f64;
use super::table::{INBOX_PARKED_ROWS, RELAY_PARKED_ROWS};

impl Metrics {
    pub(crate) fn parked_rows_of_relay(&self, state: &'static str, rows: u64) {
        self.set(&RELAY_PARKED_ROWS, &[("state", state)], as_f64(rows));
    }

    /// `None` stands for consumers that this program does not have.
    pub(crate) fn parked_rows_of_inbox(
        &self,
        consumer: Option<&str>,
        state: &'static str,
        rows: u64,
    ) {
        let consumer = consumer.map_or("(other)", named);
        let labels = [("consumer", consumer), ("state", state)];
        self.set(&INBOX_PARKED_ROWS, &labels, as_f64(rows));
    }
}
