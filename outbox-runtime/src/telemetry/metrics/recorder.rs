#[cfg(feature = "metrics")]
use std::sync::Arc;
use std::time::Duration;

use time::OffsetDateTime;

use crate::clock::Clock;

use super::table::{Kind, METRICS, Metric, Unit};

/// Gives the recorder each metric's meaning and unit.
///
/// `App::start` does it; call it by yourself, after the recorder is installed, where no `App` runs.
/// To do it again is harmless. Without the feature `metrics` it does nothing.
pub fn describe() {
    #[cfg(feature = "metrics")]
    ::metrics::with_recorder(|recorder| {
        for metric in METRICS {
            let name = ::metrics::KeyName::from(metric.name);
            let unit = match metric.unit {
                Unit::Count => ::metrics::Unit::Count,
                Unit::Seconds => ::metrics::Unit::Seconds,
            };
            let meaning = metric.meaning.into();
            match metric.kind {
                Kind::Counter => recorder.describe_counter(name, Some(unit), meaning),
                Kind::Gauge => recorder.describe_gauge(name, Some(unit), meaning),
                Kind::Histogram => recorder.describe_histogram(name, Some(unit), meaning),
            }
        }
    });
    #[cfg(not(feature = "metrics"))]
    let _ = (METRICS, [Kind::Counter], [Unit::Count]);
}

/// Emits the metrics of one service. Empty, with all its calls, without the feature `metrics`.
#[derive(Debug, Clone)]
pub(crate) struct Metrics {
    #[cfg(feature = "metrics")]
    service: Arc<str>,
    /// What delays are read from that began on another machine.
    #[cfg(feature = "metrics")]
    clock: Clock,
}

/// Labels besides the service.
pub(super) type Labels<'a> = &'a [(&'static str, &'a str)];

#[cfg(feature = "metrics")]
const METADATA: ::metrics::Metadata<'static> = ::metrics::Metadata::new(
    "outbox_runtime",
    ::metrics::Level::INFO,
    Some("outbox_runtime"),
);

impl Metrics {
    pub(crate) fn new(service: &str, clock: &Clock) -> Self {
        #[cfg(not(feature = "metrics"))]
        let _ = (service, clock);
        Self {
            #[cfg(feature = "metrics")]
            service: service.into(),
            #[cfg(feature = "metrics")]
            clock: clock.clone(),
        }
    }

    /// Counts.
    pub(super) fn add(&self, metric: &'static Metric, labels: Labels<'_>, by: u64) {
        #[cfg(feature = "metrics")]
        if by > 0 {
            ::metrics::with_recorder(|recorder| {
                recorder
                    .register_counter(&self.key(metric, labels), &METADATA)
                    .increment(by);
            });
        }
        #[cfg(not(feature = "metrics"))]
        let _ = (metric, labels, by);
    }

    /// Sets a gauge.
    pub(super) fn set(&self, metric: &'static Metric, labels: Labels<'_>, value: f64) {
        #[cfg(feature = "metrics")]
        ::metrics::with_recorder(|recorder| {
            recorder
                .register_gauge(&self.key(metric, labels), &METADATA)
                .set(value);
        });
        #[cfg(not(feature = "metrics"))]
        let _ = (metric, labels, value);
    }

    /// A histogram for several values.
    pub(super) fn series(&self, metric: &'static Metric, labels: Labels<'_>) -> Series {
        #[cfg(not(feature = "metrics"))]
        let _ = (metric, labels);
        Series {
            #[cfg(feature = "metrics")]
            histogram: ::metrics::with_recorder(|recorder| {
                recorder.register_histogram(&self.key(metric, labels), &METADATA)
            }),
            #[cfg(feature = "metrics")]
            now: self.clock.now().into(),
        }
    }

    #[cfg(feature = "metrics")]
    fn key(&self, metric: &'static Metric, labels: Labels<'_>) -> ::metrics::Key {
        let service = ::metrics::Label::new("service", Arc::clone(&self.service));
        let others = labels
            .iter()
            .map(|&(name, value)| ::metrics::Label::new(name, value.to_owned()));
        let labels: Vec<_> = std::iter::once(service).chain(others).collect();
        ::metrics::Key::from_parts(metric.name, labels)
    }
}

/// A histogram with its labels.
pub(crate) struct Series {
    #[cfg(feature = "metrics")]
    histogram: ::metrics::Histogram,
    #[cfg(feature = "metrics")]
    now: OffsetDateTime,
}

impl Series {
    /// Adds a duration.
    pub(super) fn record(&self, duration: Duration) {
        #[cfg(feature = "metrics")]
        self.histogram.record(duration.as_secs_f64());
        #[cfg(not(feature = "metrics"))]
        let _ = duration;
    }

    /// Adds a number of things.
    pub(super) fn record_count(&self, count: usize) {
        #[cfg(feature = "metrics")]
        self.histogram
            .record(f64::from(u32::try_from(count).unwrap_or(u32::MAX)));
        #[cfg(not(feature = "metrics"))]
        let _ = count;
    }

    /// Adds how long before the series was made that was, by this machine's clock: 0 if it is
    /// still to come.
    pub(crate) fn record_since(&self, then: OffsetDateTime) {
        #[cfg(feature = "metrics")]
        self.record(since(then, self.now));
        #[cfg(not(feature = "metrics"))]
        let _ = then;
    }
}

#[cfg(feature = "metrics")]
fn since(then: OffsetDateTime, now: OffsetDateTime) -> Duration {
    Duration::try_from(now - then).unwrap_or_default()
}

/// Measures a duration. Empty without the feature `metrics`.
pub(crate) struct Timer {
    #[cfg(feature = "metrics")]
    began: std::time::Instant,
}

impl Timer {
    pub(crate) fn start() -> Self {
        Self {
            #[cfg(feature = "metrics")]
            began: std::time::Instant::now(),
        }
    }

    pub(super) fn elapsed(&self) -> Duration {
        #[cfg(feature = "metrics")]
        return self.began.elapsed();
        #[cfg(not(feature = "metrics"))]
        Duration::ZERO
    }
}

#[cfg(all(test, feature = "metrics"))]
mod tests {
    use super::*;

    #[test]
    fn a_clock_that_is_behind_gives_no_negative_delay() {
        let now = OffsetDateTime::UNIX_EPOCH + Duration::from_secs(10);
        let second = Duration::from_secs(1);
        assert_eq!(since(now - second, now), second);
        assert_eq!(since(now + second, now), Duration::ZERO);
    }
}
