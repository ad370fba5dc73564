use time::OffsetDateTime;

use super::recorder::{Metrics, Timer};
use super::table::{
    BATCH_MESSAGES, DUPLICATES, HANDLE_DELAY, HANDLER_DURATION, HANDLER_RETRIES, INBOX_DEAD,
    INBOX_PARKED, UNHANDLED, UNREADABLE,
};

impl Metrics {
    /// An attempt to handle a message ended, with an outcome that the table has.
    pub(crate) fn attempted(
        &self,
        consumer: &'static str,
        event_type: &'static str,
        outcome: &'static str,
        timer: &Timer,
    ) {
        let labels = [
            ("consumer", consumer),
            ("event_type", event_type),
            ("outcome", outcome),
        ];
        self.series(&HANDLER_DURATION, &labels)
            .record(timer.elapsed());
    }

    /// A message has had its effect that was published then, if the broker knows that.
    pub(crate) fn handled(
        &self,
        consumer: &'static str,
        event_type: &'static str,
        published_at: Option<OffsetDateTime>,
    ) {
        if let Some(published_at) = published_at {
            let labels = [("consumer", consumer), ("event_type", event_type)];
            self.series(&HANDLE_DELAY, &labels)
                .record_since(published_at);
        }
    }

    /// A batch of so many messages ended, with an outcome that the table has.
    pub(crate) fn inbox_batch(&self, outcome: &'static str, messages: usize) {
        self.series(&BATCH_MESSAGES, &[("outcome", outcome)])
            .record_count(messages);
    }

    pub(crate) fn duplicate(&self, consumer: &str) {
        self.add(&DUPLICATES, &[("consumer", named(consumer))], 1);
    }

    pub(crate) fn retried(&self, consumer: &str) {
        self.add(&HANDLER_RETRIES, &[("consumer", named(consumer))], 1);
    }

    pub(crate) fn parked_in_inbox(&self, consumer: &str) {
        self.add(&INBOX_PARKED, &[("consumer", named(consumer))], 1);
    }

    pub(crate) fn dead_in_inbox(&self, consumer: &str) {
        self.add(&INBOX_DEAD, &[("consumer", named(consumer))], 1);
    }

    pub(crate) fn unhandled(&self) {
        self.add(&UNHANDLED, &[], 1);
    }

    pub(crate) fn unreadable(&self, consumer: &str) {
        self.add(&UNREADABLE, &[("consumer", named(consumer))], 1);
    }
}

/// An event that no handler takes is parked for no consumer.
pub(super) fn named(consumer: &str) -> &str {
    if consumer.is_empty() {
        "(none)"
    } else {
        consumer
    }
}
