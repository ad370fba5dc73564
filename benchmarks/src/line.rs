use std::borrow::Cow;
use std::fmt;
use std::path::Path;

use anyhow::{Context as _, Result};
use serde::{Deserialize, Serialize};

use crate::contest::Samples;

/// What a ratio has to reach.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub(crate) enum Goal {
    AtLeast(f64),
    AtMost(f64),
}

/// Two figures that were measured side by side, and what their ratio has to be.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Line {
    /// What was measured, beside what.
    pub(crate) name: String,
    /// What the figures count.
    pub(crate) unit: Cow<'static, str>,
    /// Our median over the rounds.
    pub(crate) ours: f64,
    /// The other's median over the rounds.
    pub(crate) theirs: f64,
    /// `ours / theirs`.
    pub(crate) ratio: f64,
    /// The lowest and the highest ratio of a single round.
    pub(crate) spread: (f64, f64),
    /// The goal as text, such as `>= 1.6`.
    pub(crate) goal: Goal,
    pub(crate) met: bool,
    pub(crate) rounds: usize,
    /// The curve that it is a point of, and where it stands there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) point: Option<(Cow<'static, str>, f64)>,
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
            unit: unit.into(),
            ours: ours.median(),
            theirs: theirs.median(),
            ratio,
            spread,
            goal,
            met: goal.is_met(ratio),
            rounds: ours.values().count(),
            point: None,
        }
    }

    /// The ratio as a multiple of its goal: what is at least 1.0 meets it.
    pub(crate) fn reached(&self) -> f64 {
        match self.goal {
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
    pub(crate) fn at(mut self, curve: impl Into<Cow<'static, str>>, x: f64) -> Self {
        self.point = Some((curve.into(), x));
        self
    }
}

impl Goal {
    /// A ratio that is no number meets nothing.
    fn is_met(self, ratio: f64) -> bool {
        match self {
            Self::AtLeast(least) => ratio >= least,
            Self::AtMost(most) => ratio <= most,
        }
    }
}

impl fmt::Display for Goal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AtLeast(ratio) => write!(f, ">= {ratio}"),
            Self::AtMost(ratio) => write!(f, "<= {ratio}"),
        }
    }
}

impl From<Goal> for String {
    fn from(goal: Goal) -> Self {
        goal.to_string()
    }
}

impl TryFrom<String> for Goal {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let goal: Option<fn(f64) -> Self> = match text.get(..3) {
            Some(">= ") => Some(Self::AtLeast),
            Some("<= ") => Some(Self::AtMost),
            _ => None,
        };
        let ratio = text.get(3..).and_then(|ratio| ratio.parse().ok());
        let goal = goal.zip(ratio).map(|(goal, ratio)| goal(ratio));
        goal.ok_or_else(|| format!("{text:?} is no goal; one looks like \">= 1.6\""))
    }
}

/// The lines that an earlier run told as JSON.
pub(crate) fn read(file: &Path) -> Result<Vec<Line>> {
    let text = std::fs::read_to_string(file)
        .with_context(|| format!("the lines in {}", file.display()))?;
    let lines = text.lines().enumerate();
    let lines = lines.filter(|(_, line)| !line.trim().is_empty());
    lines
        .map(|(place, line)| {
            serde_json::from_str(line)
                .with_context(|| format!("line {} of {}", place + 1, file.display()))
        })
        .collect()
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

    #[test]
    fn what_a_run_told_can_be_read_again() {
        let samples = Samples::from([10.0, 30.0, 20.0]);
        let line = Line::compare("x | y", "rows/s", Goal::AtLeast(0.95), &samples, &samples);
        let told = serde_json::to_string(&line.at("curve", 8.0)).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("lines.json");
        std::fs::write(&file, format!("{told}\n\n{told}\n")).unwrap();
        let lines = read(&file).unwrap();
        assert_eq!(lines.len(), 2);
        assert_eq!(serde_json::to_string(&lines[1]).unwrap(), told);
        std::fs::write(&file, told.replace(">=", "about")).unwrap();
        let error = format!("{:#}", read(&file).unwrap_err());
        assert!(
            error.contains("line 1 of") && error.contains("is no goal"),
            "{error}"
        );
    }
}
