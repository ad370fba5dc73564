mod notice;
mod ours;
mod rate;

use anyhow::{Result, anyhow};

use self::notice::BareNotice;
use self::ours::{CommitToPublish, Wake};
use crate::bench::Bench;
use crate::contest::{Samples, measure};
use crate::line::{Goal, Line};

/// How long it takes from a commit to its message at the publisher, at a steady rate.
///
/// Both sides are timed from just before their statement is sent (the unit of work's commit, the
/// `NOTIFY`), the wait for a connection of the pool included, until the receiver has it. Each
/// statement is begun when the schedule says so, whether or not earlier ones are over.
pub(crate) async fn run(bench: &Bench) -> Result<Vec<Line>> {
    let database = bench.server.database("latency").await?;
    let span = bench.seconds(5, 2);
    let mut apart = CommitToPublish::new(&database, span, Wake::ByNotice).await?;
    let mut within = CommitToPublish::new(&database, span, Wake::InProcess).await?;
    let mut bare = BareNotice::new(&database, span).await?;
    let samples = measure(bench, &mut [&mut apart, &mut within, &mut bare]).await?;
    let [apart, within, bare] = samples.as_slice() else {
        return Err(anyhow!("a contestant told no figure"));
    };
    let mut lines = Vec::new();
    for (percentile, index) in [("p50", 0), ("p99", 1)] {
        let of = |figures: &[Samples]| figures.get(index).cloned().unwrap_or_default();
        let mut line = |what: &str, goal, ours: &[Samples]| {
            let name = format!(
                "commit to publish, {} commits/s, {what}, {percentile} | a bare NOTIFY and LISTEN",
                rate::PER_SECOND
            );
            let goal = Goal::AtMost(goal);
            lines.push(Line::compare(name, "ms", goal, &of(ours), &of(bare)));
        };
        line("relay elsewhere", 2.0, apart);
        line("relay in the process", 0.5, within);
    }
    database.drop().await?;
    Ok(lines)
}
