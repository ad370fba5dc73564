use serde::Serialize;

use crate::contest::Samples;

/// What a ratio has to reach.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Goal {
    AtLeast(f64),
    AtMost(f64),
}

/// Two figures that were measured side by side, and what their ratio has to be.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Line {
    /// What was measured, beside what.
    pub(crate) name: String,
    /// What the figures count.
    pub(crate) unit: &'static str,
    /// Our median over the rounds.
    pub(crate) ours: f64,
    /// The other's median over the rounds.
    pub(crate) theirs: f64,
    /// `ours / theirs`.
    pub(crate) ratio: f64,
    /// The lowest and the highest ratio of a single round.
    pub(crate) spread: (f64, f64),
    /// The goal as text, such as `>= 1.6`.
    pub(crate) goal: String,
    /// The goal itself.
    #[serde(skip)]
    pub(crate) target: Goal,
    pub(crate) met: bool,
    pub(crate) rounds: usize,
    /// The curve that it is a point of, and where it stands there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) point: Option<(&'static str, f64)>,
}

impl Line {
    /// Compares one figure of two contestants.
    pub(crate) fn compare(
        name: impl Into<String>,
        unit: &'static str,
        goal: Goal,
        ours: &Samples,
        theirs: &Samples,
    ) -> Self {
        let ratio = ours.median() / theirs.median();
        let ratios = ours.values().zip(theirs.values()).map(|(a, b)| a / b);
        let spread = ratios.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), ratio| {
            (low.min(ratio), high.max(ratio))
        });
        Self {
            name: name.into(),
            unit,
            ours: ours.median(),
            theirs: theirs.median(),
            ratio,
            spread,
            goal: goal.text(),
            target: goal,
            met: goal.is_met(ratio),
            rounds: ours.values().count(),
            point: None,
        }
    }

    /// The ratio as a multiple of its goal: what is at least 1.0 meets it.
    pub(crate) fn reached(&self) -> f64 {
        match self.target {
            Goal::AtLeast(least) => self.ratio / least,
            Goal::AtMost(most) => most / self.ratio,
        }
    }

    /// What was measured, and what beside if the name says so.
    pub(crate) fn parts(&self) -> (&str, Option<&str>) {
        match self.name.split_once(" | ") {
            Some((what, beside)) => (what, Some(beside)),
            None => (&self.name, None),
        }
    }

    /// Makes it a point of a curve.
    pub(crate) fn at(mut self, curve: &'static str, x: f64) -> Self {
        self.point = Some((curve, x));
        self
    }
}

impl Goal {
    fn text(self) -> String {
        match self {
            Self::AtLeast(ratio) => format!(">= {ratio}"),
            Self::AtMost(ratio) => format!("<= {ratio}"),
        }
    }

    /// A ratio that is no number meets nothing.
    fn is_met(self, ratio: f64) -> bool {
        match self {
            Self::AtLeast(least) => ratio >= least,
            Self::AtMost(most) => ratio <= most,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_compares_the_medians_and_keeps_the_spread() {
        let ours = Samples::from([10.0, 30.0, 20.0]);
        let theirs = Samples::from([10.0, 10.0, 10.0]);
        let line = Line::compare("x", "rows/s", Goal::AtLeast(2.0), &ours, &theirs);
        assert_eq!((line.ours, line.theirs, line.ratio), (20.0, 10.0, 2.0));
        assert_eq!(line.spread, (1.0, 3.0));
        assert!(line.met);
        assert!(!Line::compare("x", "ms", Goal::AtMost(1.9), &ours, &theirs).met);
        assert!(!Goal::AtLeast(0.0).is_met(f64::NAN) && !Goal::AtMost(1.0).is_met(f64::NAN));
    }
}
