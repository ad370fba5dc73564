/// A metric that the runtime emits.
///
/// ```
/// use outbox_runtime::telemetry::metrics::METRICS;
///
/// for metric in METRICS {
///     println!("{}: {}", metric.name, metric.meaning);
/// }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Metric {
    /// Its name.
    pub name: &'static str,
    /// How it behaves.
    pub kind: Kind,
    /// What it is measured in.
    pub unit: Unit,
    /// The labels that each of its values has.
    pub labels: &'static [&'static str],
    /// What it says.
    pub meaning: &'static str,
}

/// How a metric behaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Kind {
    /// It only grows, from 0 at the start of the process.
    Counter,
    /// It is a state, and may fall.
    Gauge,
    /// It is a distribution.
    Histogram,
}

/// What a metric is measured in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Unit {
    /// A number of things.
    Count,
    /// Seconds, with fractions.
    Seconds,
}

/// Writes each metric once: a constant for the code that emits it, and an entry of the table.
macro_rules! metrics {
    ($($constant:ident: $kind:ident of $unit:ident, $name:literal [$($label:literal)*], $meaning:literal;)+) => {
        $(pub(super) static $constant: Metric = Metric {
            name: $name,
            kind: Kind::$kind,
            unit: Unit::$unit,
            labels: &["service" $(, $label)*],
            meaning: $meaning,
        };)+

        /// Every metric that the runtime emits, in the order of the table.
        pub static METRICS: &[&Metric] = &[$(&$constant),+];
    };
}

metrics! {
    COMMIT_DURATION: Histogram of Seconds, "outbox_unit_of_work_commit_duration_seconds" ["outcome"],
        "How long a commit of a unit of work took; outcome: committed, joined (written into your own transaction, whose end is not known), version_conflict (another one was faster), transient, permanent";
    EVENTS: Counter of Count, "outbox_unit_of_work_events_total" [],
        "Events that were committed by units of work; those in joined transactions are not counted";
    PUBLISHED: Counter of Count, "outbox_relay_published_total" [],
        "Messages that the broker confirmed; a repetition counts again";
    BATCHES: Counter of Count, "outbox_relay_batches_total" [],
        "Calls to the publisher, failed ones included";
    PUBLISH_DELAY: Histogram of Seconds, "outbox_relay_occurred_to_published_seconds" [],
        "From an event's occurred_at to the broker's confirmation";
    PUBLISH_FAILURES: Counter of Count, "outbox_relay_failures_total" ["kind"],
        "Messages that the broker did not take, without those behind them; kind: transient, permanent";
    PUBLISH_RETRIES: Counter of Count, "outbox_relay_retries_total" [],
        "Messages that will be offered again after a failure";
    RELAY_PARKED: Counter of Count, "outbox_relay_parked_total" [],
        "Messages that were parked, those behind a failing one included; one that is read again after a crash counts again";
    RELAY_DEAD: Counter of Count, "outbox_relay_dead_total" [],
        "Messages that the relay has given up: dead letters";
    CIRCUIT: Gauge of Count, "outbox_relay_circuit_state" [],
        "Whether the relay's circuit to the broker lets calls through: 0 closed (it does), 1 half-open (one, to see), 2 open (none)";
    CIRCUIT_OPENED: Counter of Count, "outbox_relay_circuit_opened_total" [],
        "How often the circuit opened";
    LEASE_CHANGES: Counter of Count, "outbox_relay_lease_changes_total" ["change"],
        "Shards whose lease changed; change: claimed, renewed_late (after it had ended), lost (to another instance), handed_over";
    SHARDS: Gauge of Count, "outbox_relay_shards" [],
        "Shards that this instance owns, of 64";
    SCHEDULED_MOVED: Counter of Count, "outbox_relay_scheduled_moved_total" [],
        "Scheduled events that were due and are in the log now";
    SCHEDULED_DROPPED: Counter of Count, "outbox_relay_scheduled_dropped_total" [],
        "Scheduled events that were due and whose business key was in the log already";
    PENDING: Gauge of Count, "outbox_relay_pending_messages" [],
        "Sampled: rows of the log above the stored positions, neither known to be published nor parked; as far as the relay counts";
    OLDEST_PENDING: Gauge of Seconds, "outbox_relay_oldest_pending_age_seconds" [],
        "Sampled: how long ago the first pending row occurred, by the database's clock; 0 when none is pending";
    WATERMARK_LAG: Gauge of Count, "outbox_relay_watermark_lag" [],
        "Sampled: how many ids the lowest stored position is behind the newest row; an open transaction that writes events holds it back";
    RELAY_PARKED_ROWS: Gauge of Count, "outbox_relay_parked_messages" ["state"],
        "Sampled: messages that are parked in the relay, up to 10,000 in all; state: failing, waiting (behind one of the others), dead";
    HANDLER_DURATION: Histogram of Seconds, "outbox_inbox_handler_duration_seconds" ["consumer" "event_type" "outcome"],
        "How long an attempt took, with its transaction; outcome: committed, duplicate, parked (behind another), version_conflict, transient, permanent. A panic is transient. In a batch it is the time of the whole batch, and a batch that is rolled back is no attempt";
    HANDLE_DELAY: Histogram of Seconds, "outbox_inbox_published_to_handled_seconds" ["consumer" "event_type"],
        "From the time of publishing to the commit of the effect, where the broker tells that time; not for messages that were parked in between";
    BATCH_MESSAGES: Histogram of Count, "outbox_inbox_batch_messages" ["outcome"],
        "How many messages a batch of the inbox had, where batches are on; outcome: committed, rolled_back (its messages were then handled one by one). A message that is handled alone is no batch";
    DUPLICATES: Counter of Count, "outbox_inbox_duplicates_total" ["consumer"],
        "Deliveries whose effect was there already, or was on its way";
    HANDLER_RETRIES: Counter of Count, "outbox_inbox_retries_total" ["consumer"],
        "Messages that will be tried again after a failed attempt";
    INBOX_PARKED: Counter of Count, "outbox_inbox_parked_total" ["consumer"],
        "Messages that were set aside, since they failed or wait behind one that did";
    INBOX_DEAD: Counter of Count, "outbox_inbox_dead_total" ["consumer"],
        "Messages that a consumer has given up: dead letters";
    UNHANDLED: Counter of Count, "outbox_inbox_unhandled_total" [],
        "Deliveries of events that no handler takes";
    UNREADABLE: Counter of Count, "outbox_inbox_unreadable_total" ["consumer"],
        "Deliveries in a version that no handler of the consumer reads; consumer (none): of what is no message";
    INBOX_PARKED_ROWS: Gauge of Count, "outbox_inbox_parked_messages" ["consumer" "state"],
        "Sampled: messages that are parked in the inbox, up to 10,000 in all; state: failing, waiting, dead; consumer: also (none) for events that no handler takes and (other) for consumers that this program does not have";
    REMOVED: Counter of Count, "outbox_retention_removed_total" ["table"],
        "Rows that retention removed or archived; table: outbox, journal, inbox, discarded, notes";
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::fmt::Write;

    use super::*;

    fn markdown() -> String {
        let mut text =
            String::from("| name | type | unit | labels | meaning |\n|---|---|---|---|---|\n");
        for metric in METRICS {
            let labels: Vec<_> = metric
                .labels
                .iter()
                .map(|label| format!("`{label}`"))
                .collect();
            let (kind, unit) = (format!("{:?}", metric.kind), format!("{:?}", metric.unit));
            writeln!(
                text,
                "| `{}` | {} | {} | {} | {} |",
                metric.name,
                kind.to_lowercase(),
                unit.to_lowercase(),
                labels.join(", "),
                metric.meaning
            )
            .unwrap();
        }
        text
    }

    /// With `OUTBOX_WRITE_METRICS` in the environment it writes the page anew.
    #[test]
    fn the_page_is_the_table() {
        if std::env::var_os("OUTBOX_WRITE_METRICS").is_some() {
            let path = concat!(
                env!("CARGO_MANIFEST_DIR"),
                "/src/telemetry/metrics/metrics.md"
            );
            std::fs::write(path, markdown()).unwrap();
            return;
        }
        assert_eq!(include_str!("metrics.md"), markdown());
    }

    #[test]
    fn names_follow_one_scheme() {
        let names: BTreeSet<_> = METRICS.iter().map(|metric| metric.name).collect();
        assert_eq!(names.len(), METRICS.len());
        for metric in METRICS {
            let name = metric.name;
            assert!(name.starts_with("outbox_"), "{name}");
            assert!(
                name.bytes().all(|b| b.is_ascii_lowercase() || b == b'_'),
                "{name}"
            );
            assert_eq!(
                name.ends_with("_total"),
                metric.kind == Kind::Counter,
                "{name}"
            );
            assert_eq!(
                name.ends_with("_seconds"),
                metric.unit == Unit::Seconds,
                "{name}"
            );
        }
    }
}
