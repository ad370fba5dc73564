//! The look at the backlog: how much waits in the log and since when, against the ceiling.

use std::time::Duration;

use tokio::time::Instant;

use super::engine::Engine;
use crate::store::{Backend, Backlog, Error};

/// The part of health that speaks of the backlog.
const BACKLOG: &str = "the relay's backlog";
/// As far as counting goes, whatever the ceiling: 100,000 rows took PostgreSQL 26 ms.
pub(super) const MOST_COUNTED: u32 = 1_000_000;
/// How many rows are counted at least, for who reads the figures.
const LEAST_COUNTED: u32 = 10_000;

/// What a backlog may come to before the health says so.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ceiling {
    pub(super) rows: u32,
    pub(super) age: Duration,
}

impl Ceiling {
    /// How many rows to look at to know whether the ceiling is reached.
    fn look(self) -> u32 {
        if self.rows > MOST_COUNTED {
            LEAST_COUNTED
        } else {
            self.rows.saturating_add(1).max(LEAST_COUNTED)
        }
    }

    /// What is above the ceiling, as the end of a sentence.
    fn exceeded(self, backlog: &Backlog) -> Option<String> {
        let mut above = Vec::new();
        if backlog.pending > u64::from(self.rows) {
            above.push(format!(
                "{}{} rows are pending (ceiling: {})",
                if backlog.is_more { "at least " } else { "" },
                backlog.pending,
                self.rows
            ));
        }
        if let Some(oldest) = backlog.oldest
            && oldest.age > self.age
        {
            above.push(format!(
                "the oldest pending row, {}, occurred {} s ago (ceiling: {} s)",
                oldest.id,
                oldest.age.as_secs(),
                self.age.as_secs()
            ));
        }
        (!above.is_empty()).then(|| above.join(" and "))
    }
}

impl<DB: Backend> Engine<DB> {
    /// Looks at the backlog and tells the health.
    ///
    /// Every instance does, whether it owns shards or not: health is each process's own, and only
    /// who looks at all shards notices those that nobody relays.
    pub(super) async fn look_at_backlog(&mut self) {
        match self.read_backlog().await {
            Ok(backlog) => {
                self.report_backlog(&backlog);
                self.counters.backlog(backlog);
                let next = Instant::now() + self.options.backlog_interval;
                self.sampling.succeeded(next, &self.health);
            }
            Err(error) => self
                .sampling
                .failed(&error, self.options.backoff, &self.health),
        }
    }

    async fn read_backlog(&self) -> Result<Backlog, Error> {
        let look = async {
            let mut connection = self.outbox.connection().await?;
            let most = self.options.backlog_ceiling.look();
            DB::backlog(&mut connection, &self.backlog_queries, most)
                .await
                .map_err(Error::database("looking at the backlog"))
        };
        self.in_time("looking at the backlog", look).await
    }

    fn report_backlog(&self, backlog: &Backlog) {
        let Some(exceeded) = self.options.backlog_ceiling.exceeded(backlog) else {
            return self.health.recover(BACKLOG);
        };
        let mut text = format!(
            "the relay's backlog is above its ceiling: {exceeded}; the lowest position lags {} ids \
             behind the newest row",
            backlog.watermark_lag
        );
        if let Some(id) = self.scans.first_gap() {
            text.push_str(&format!(
                "; a transaction that is open since row {id} holds the positions back, rows above \
                 are published all the same"
            ));
        }
        tracing::warn!("{text}");
        self.health.degrade(BACKLOG, text);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CEILING: Ceiling = Ceiling {
        rows: 100,
        age: Duration::from_secs(60),
    };

    #[test]
    fn counting_goes_one_beyond_the_ceiling_and_never_without_end() {
        assert_eq!(CEILING.look(), LEAST_COUNTED);
        let rows = |rows| Ceiling { rows, ..CEILING }.look();
        assert_eq!(rows(LEAST_COUNTED), LEAST_COUNTED + 1);
        assert_eq!(rows(MOST_COUNTED), MOST_COUNTED + 1);
        assert_eq!(rows(MOST_COUNTED + 1), LEAST_COUNTED);
        assert_eq!(rows(u32::MAX), LEAST_COUNTED);
    }
}
