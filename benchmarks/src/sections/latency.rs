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
/// The bare notice is timed from just before its statement is sent until it is heard: the round
/// trip. Ours is timed from the same point, so that the commit itself is in the figure, and from
/// the commit's return, which is what comes on top of a commit. A wait for a connection counts.
/// Each statement is begun when the schedule says so, whether or not earlier ones are over.
pub(crate) async fn run(bench: &Bench) -> Result<Vec<Line>> {
    let database = bench.server.database("latency").await?;
    let span = bench.seconds(5, 1);
    let mut apart = CommitToPublish::new(&database, span, Wake::ByNotice).await?;
    let mut within = CommitToPublish::new(&database, span, Wake::InProcess).await?;
    let mut bare = BareNotice::new(&database, span).await?;
    let samples = measure(bench, &mut [&mut apart, &mut within, &mut bare]).await?;
    let [apart, within, bare] = samples.as_slice() else {
        return Err(anyhow!("a contestant told no figure"));
    };
    let mut lines = Vec::new();
    for (place, percentile) in ["p50", "p99"].into_iter().enumerate() {
        let of =
            |figures: &[Samples], index: usize| figures.get(index).cloned().unwrap_or_default();
        let round_trip = of(bare, place);
        for (start, first) in [("before", 0), ("the return of", 2)] {
            let mut line = |relay: &str, goal, ours: &[Samples]| {
                let name = format!(
                    "from {start} a commit to its publication, {} commits/s, {relay}, {percentile} | \
                     a bare NOTIFY and LISTEN",
                    rate::PER_SECOND
                );
                let ours = of(ours, first + place);
                lines.push(Line::compare(
                    name,
                    "ms",
                    Goal::AtMost(goal),
                    &ours,
                    &round_trip,
                ));
            };
            line("relay elsewhere", 2.0, apart);
            line("relay in the process", 0.5, within);
        }
    }
    database.drop().await?;
    Ok(lines)
}
