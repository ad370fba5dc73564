use std::ops::RangeInclusive;

use anyhow::Result;
use async_trait::async_trait;

use crate::bench::Bench;

/// Someone whose work is measured.
#[async_trait]
pub(crate) trait Contestant: Send {
    /// What it is called while it works.
    fn name(&self) -> String;

    /// Works through one round, checks what came out, and tells its figures, always equally many.
    ///
    /// # Errors
    /// Also when the result is wrong: a fast wrong answer is none.
    async fn run(&mut self) -> Result<Vec<f64>>;
}

/// One figure of a contestant, round by round.
#[derive(Debug, Clone, Default)]
pub(crate) struct Samples(Vec<f64>);

impl Samples {
    pub(crate) fn median(&self) -> f64 {
        median(self.0.clone())
    }

    pub(crate) fn values(&self) -> impl Iterator<Item = f64> + '_ {
        self.0.iter().copied()
    }
}

impl<const N: usize> From<[f64; N]> for Samples {
    fn from(values: [f64; N]) -> Self {
        Self(values.into())
    }
}

/// The middle one; the mean of the two in the middle where they are even in number.
pub(crate) fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    let at = |index: usize| values.get(index).copied().unwrap_or(f64::NAN);
    match values.len() % 2 {
        0 => (at(middle.wrapping_sub(1)) + at(middle)) / 2.0,
        _ => at(middle),
    }
}

/// Lets all work in turn, round after round, and gives each one's figures.
///
/// One round before them warms up and does not count. Who begins changes with each round, so that
/// nobody always works in the other's wake.
pub(crate) async fn measure(
    bench: &Bench,
    contestants: &mut [&mut dyn Contestant],
) -> Result<Vec<Vec<Samples>>> {
    measure_rounds(bench, 0..=bench.rounds, contestants).await
}

/// Lets all work in turn without a round that warms up, once in a quick run: for those whose rounds
/// begin with long preparations in a process of their own.
pub(crate) async fn measure_cold(
    bench: &Bench,
    contestants: &mut [&mut dyn Contestant],
) -> Result<Vec<Vec<Samples>>> {
    let rounds = if bench.is_quick() { 1 } else { bench.rounds };
    measure_rounds(bench, 1..=rounds, contestants).await
}

async fn measure_rounds(
    bench: &Bench,
    rounds: RangeInclusive<usize>,
    contestants: &mut [&mut dyn Contestant],
) -> Result<Vec<Vec<Samples>>> {
    let mut samples: Vec<Vec<Samples>> = vec![Vec::new(); contestants.len()];
    let count = contestants.len();
    let last = *rounds.end();
    for round in rounds {
        for turn in 0..count {
            let index = (turn + round) % count;
            let (Some(contestant), Some(samples)) =
                (contestants.get_mut(index), samples.get_mut(index))
            else {
                continue;
            };
            let name = contestant.name();
            bench.progress.show(&name, round, last);
            let figures = contestant
                .run()
                .await
                .map_err(|error| error.context(format!("{name}, round {round}")))?;
            if round == 0 {
                continue;
            }
            samples.resize_with(figures.len(), Samples::default);
            for (sample, figure) in samples.iter_mut().zip(figures) {
                sample.0.push(figure);
            }
        }
    }
    Ok(samples)
}

/// Lets two work in turn, and gives the first figure of each.
pub(crate) async fn pair(
    bench: &Bench,
    ours: &mut dyn Contestant,
    theirs: &mut dyn Contestant,
) -> Result<(Samples, Samples)> {
    let mut samples = measure(bench, &mut [ours, theirs]).await?.into_iter();
    let mut first = || -> Option<Samples> { samples.next()?.into_iter().next() };
    first()
        .zip(first())
        .ok_or_else(|| anyhow::anyhow!("a contestant told no figure"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_the_middle() {
        assert_eq!(median(vec![3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(vec![4.0, 1.0, 2.0, 3.0]), 2.5);
        assert!(median(Vec::new()).is_nan());
    }
}
