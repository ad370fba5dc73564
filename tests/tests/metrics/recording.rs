use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;

use metrics_util::MetricKind;
use metrics_util::debugging::{DebugValue, DebuggingRecorder, Snapshotter};
use outbox_runtime::telemetry::metrics::{Kind, METRICS, Unit};

thread_local! {
    /// The names that were emitted on this thread since `forget`.
    static NAMES: RefCell<BTreeSet<&'static str>> = RefCell::default();
}

pub fn forget() {
    NAMES.take();
}

pub fn names() -> BTreeSet<&'static str> {
    NAMES.with_borrow(Clone::clone)
}

/// Records what is emitted on this thread until it is dropped.
pub struct Recording {
    _guard: metrics::LocalRecorderGuard<'static>,
    snapshotter: Snapshotter,
    seen: Mutex<Figures>,
}

/// What was emitted: by name and labels, those of the service left out.
#[derive(Debug, Clone, Default)]
pub struct Figures {
    counters: BTreeMap<String, u64>,
    gauges: BTreeMap<String, f64>,
    histograms: BTreeMap<String, Vec<f64>>,
}

impl Recording {
    pub fn start() -> Self {
        let recorder: &'static DebuggingRecorder = Box::leak(Box::new(DebuggingRecorder::new()));
        let guard = metrics::set_default_local_recorder(recorder);
        outbox_runtime::telemetry::metrics::describe();
        Self {
            _guard: guard,
            snapshotter: recorder.snapshotter(),
            seen: Mutex::default(),
        }
    }

    /// What was emitted so far. Each metric is compared with the table.
    pub fn figures(&self) -> Figures {
        let mut seen = self.seen.lock().unwrap();
        for (key, unit, meaning, value) in self.snapshotter.snapshot().into_vec() {
            let (kind, key) = key.into_parts();
            let metric = METRICS
                .iter()
                .find(|metric| metric.name == key.name())
                .unwrap_or_else(|| panic!("{} is not in the table", key.name()));
            let expected = match metric.kind {
                Kind::Counter => MetricKind::Counter,
                Kind::Gauge => MetricKind::Gauge,
                _ => MetricKind::Histogram,
            };
            assert_eq!(kind, expected, "{}", metric.name);
            let expected = match metric.unit {
                Unit::Seconds => metrics::Unit::Seconds,
                _ => metrics::Unit::Count,
            };
            assert_eq!(unit, Some(expected), "{}", metric.name);
            assert_eq!(meaning.as_deref(), Some(metric.meaning));
            let labels: Vec<_> = key.labels().map(metrics::Label::key).collect();
            assert_eq!(labels, metric.labels, "{}", metric.name);
            let service = key.labels().next().map(metrics::Label::value);
            assert_eq!(service, Some("test"));
            NAMES.with_borrow_mut(|names| names.insert(metric.name));
            seen.take(&key, value);
        }
        seen.clone()
    }
}

impl Figures {
    fn take(&mut self, key: &metrics::Key, value: DebugValue) {
        let labels: Vec<_> = key
            .labels()
            .skip(1)
            .map(|label| format!("{}={}", label.key(), label.value()))
            .collect();
        let name = format!("{}{{{}}}", key.name(), labels.join(","));
        match value {
            DebugValue::Counter(count) => *self.counters.entry(name).or_default() += count,
            // A look sets them back to 0, so that of two looks the later one may know nothing.
            DebugValue::Gauge(value) if value.0 == 0.0 => {
                self.gauges.entry(name).or_default();
            }
            DebugValue::Gauge(value) => {
                self.gauges.insert(name, value.0);
            }
            DebugValue::Histogram(values) => {
                let values = values.into_iter().map(|value| value.0);
                self.histograms.entry(name).or_default().extend(values);
            }
        }
    }

    /// A counter: its name without `outbox_`, and its labels as `a=b,c=d`.
    pub fn count(&self, name: &str, labels: &str) -> u64 {
        let count = self.counters.get(&full(name, labels));
        count.copied().unwrap_or_default()
    }

    /// The sum of a counter over all labels.
    pub fn sum(&self, name: &str) -> u64 {
        let start = format!("outbox_{name}{{");
        let of_name = self
            .counters
            .iter()
            .filter(|(key, _)| key.starts_with(&start));
        of_name.map(|(_, count)| count).sum()
    }

    pub fn gauge(&self, name: &str, labels: &str) -> Option<f64> {
        self.gauges.get(&full(name, labels)).copied()
    }

    /// What a histogram was given.
    pub fn values(&self, name: &str, labels: &str) -> Vec<f64> {
        let values = self.histograms.get(&full(name, labels));
        values.cloned().unwrap_or_default()
    }

    /// How many values a histogram was given, by its labels.
    pub fn counts_of(&self, name: &str) -> BTreeMap<&str, usize> {
        let start = format!("outbox_{name}{{");
        self.histograms
            .iter()
            .filter_map(|(key, values)| {
                let labels = key.strip_prefix(&start)?.strip_suffix('}')?;
                Some((labels, values.len()))
            })
            .collect()
    }
}

fn full(name: &str, labels: &str) -> String {
    format!("outbox_{name}{{{labels}}}")
}
