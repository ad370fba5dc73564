use std::future::Future;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use anyhow::{Result, anyhow, ensure};
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio::time::{Instant, interval_at, timeout};

/// How many are begun in a second.
pub(super) const PER_SECOND: u32 = 200;

/// How long the last ones may take.
const PATIENCE: Duration = Duration::from_secs(10);

/// When each of some things began, when its statement was over, and when it arrived.
#[derive(Clone)]
pub(super) struct Stamps(Arc<Vec<Stamp>>, Arc<Notify>);

#[derive(Default)]
struct Stamp {
    began: OnceLock<Instant>,
    returned: OnceLock<Instant>,
    arrived: OnceLock<Instant>,
}

impl Stamps {
    /// As many as are begun in that time.
    pub(super) fn of(span: Duration) -> Self {
        let count = (span.as_secs_f64() * f64::from(PER_SECOND)).round() as usize;
        let stamps = (0..count.max(1)).map(|_| Stamp::default()).collect();
        Self(Arc::new(stamps), Arc::default())
    }

    pub(super) fn count(&self) -> usize {
        self.0.len()
    }

    /// Right before the statement.
    pub(super) fn begin(&self, number: usize) {
        if let Some(stamp) = self.0.get(number) {
            stamp.began.get_or_init(Instant::now);
        }
    }

    /// Right after it.
    pub(super) fn end(&self, number: usize) {
        if let Some(stamp) = self.0.get(number) {
            stamp.returned.get_or_init(Instant::now);
        }
    }

    /// The first arrival counts.
    pub(super) fn arrive(&self, number: usize) {
        if let Some(stamp) = self.0.get(number) {
            stamp.arrived.get_or_init(Instant::now);
            self.1.notify_one();
        }
    }

    /// Begins each when its time has come, without waiting for those before.
    pub(super) async fn open_loop<F>(&self, begin: impl Fn(usize) -> F) -> Result<()>
    where
        F: Future<Output = Result<()>> + Send + 'static,
    {
        let pause = Duration::from_secs(1) / PER_SECOND;
        let mut schedule = interval_at(Instant::now() + pause, pause);
        let mut begun = JoinSet::new();
        for number in 0..self.count() {
            schedule.tick().await;
            begun.spawn(begin(number));
        }
        while let Some(done) = begun.join_next().await {
            done.map_err(|panic| anyhow!("a statement's task ended early: {panic}"))??;
        }
        Ok(())
    }

    /// From before the statement, and from its return, each the median and the 99th percentile, in
    /// milliseconds, once all have arrived.
    pub(super) async fn percentiles(&self) -> Result<Vec<f64>> {
        let all = async {
            while self.0.iter().any(|stamp| stamp.arrived.get().is_none()) {
                self.1.notified().await;
            }
        };
        let complete = timeout(PATIENCE, all).await;
        ensure!(complete.is_ok(), "some did not arrive in {PATIENCE:?}");
        let mut figures = percentiles_from(&self.0, |stamp| &stamp.began)?;
        figures.extend(percentiles_from(&self.0, |stamp| &stamp.returned)?);
        Ok(figures)
    }
}

fn percentiles_from(
    stamps: &[Stamp],
    start: impl Fn(&Stamp) -> &OnceLock<Instant>,
) -> Result<Vec<f64>> {
    let mut millis: Vec<f64> = stamps
        .iter()
        .filter_map(|stamp| {
            // It may arrive before the statement's return does.
            let took = stamp.arrived.get()?.duration_since(*start(stamp).get()?);
            Some(took.as_secs_f64() * 1_000.0)
        })
        .collect();
    millis.sort_by(f64::total_cmp);
    [0.5, 0.99]
        .into_iter()
        .map(|share| {
            let rank = (millis.len() as f64 * share).ceil() as usize;
            let found = millis.get(rank.max(1) - 1).copied();
            found.ok_or_else(|| anyhow!("nothing arrived"))
        })
        .collect()
}
