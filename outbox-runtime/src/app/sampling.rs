use std::collections::BTreeMap;
use std::time::Duration;

use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;
use tracing::debug;

use crate::store::{Backend, Error, ParkedCount};
use crate::unit_of_work::Outbox;

/// How often metrics are taken from the database unless the user says.
pub(super) const INTERVAL: Duration = Duration::from_secs(15);
/// How many rows of a table are counted at most.
const MOST_COUNTED: u32 = 10_000;
const STATES: [&str; 3] = ["failing", "waiting", "dead"];

/// Takes the metrics from the database that are states of tables.
pub(super) struct Sampler<DB: Backend> {
    pub(super) outbox: Outbox<DB>,
    pub(super) interval: Duration,
    /// The consumers of this program, and the empty one: only those become labels.
    pub(super) consumers: Vec<&'static str>,
}

impl<DB: Backend> Sampler<DB> {
    /// Samples until `stop`. A sample that fails or takes too long is left out.
    pub(super) async fn run(self, stop: CancellationToken) {
        let sampling = async {
            loop {
                match timeout(self.interval, self.sample()).await {
                    Ok(Ok(())) => {}
                    Ok(Err(error)) => debug!(%error, "a sample of metrics is left out"),
                    Err(_) => debug!("a sample of metrics is left out: it took too long"),
                }
                sleep(self.interval).await;
            }
        };
        stop.run_until_cancelled(sampling).await;
    }

    async fn sample(&self) -> Result<(), Error> {
        let outbox = &self.outbox;
        let counts = DB::parked_counts(outbox.pool(), outbox.names(), MOST_COUNTED).await?;
        let metrics = outbox.metrics();
        for ((consumer, state), messages) in self.by_label(counts) {
            match consumer {
                Label::Relay => metrics.parked_rows_of_relay(state, messages),
                Label::Consumer(name) => metrics.parked_rows_of_inbox(Some(name), state, messages),
                Label::Other => metrics.parked_rows_of_inbox(None, state, messages),
            }
        }
        Ok(())
    }

    /// A number for each label, 0 where nothing is parked any more.
    fn by_label(&self, counts: Vec<ParkedCount>) -> BTreeMap<(Label, &'static str), u64> {
        let consumers = self.consumers.iter().map(|&name| Label::Consumer(name));
        let labels = [Label::Relay, Label::Other].into_iter().chain(consumers);
        let mut sums: BTreeMap<_, _> = labels
            .flat_map(|label| STATES.map(|state| ((label, state), 0)))
            .collect();
        for count in counts {
            let Some(state) = STATES.into_iter().find(|state| *state == count.state) else {
                continue;
            };
            let label = match &count.consumer {
                None => Label::Relay,
                Some(name) => self
                    .consumers
                    .iter()
                    .find(|known| *known == name)
                    .map_or(Label::Other, |known| Label::Consumer(known)),
            };
            *sums.entry((label, state)).or_default() += count.messages;
        }
        sums
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Label {
    Relay,
    Consumer(&'static str),
    /// All consumers that this program does not have.
    Other,
}
