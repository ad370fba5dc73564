//! Step headings while the work runs, and the table at its end.

use std::io::IsTerminal;
use std::time::{Duration, Instant};

use anyhow::Result;

use crate::process::{self, Interrupted};

/// How one step ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Outcome {
    Passed(String),
    Failed(String),
    /// Something that this machine lacks; says what and why.
    NotExercised(String),
}

/// Collects the outcome of every step and prints the table.
#[derive(Debug)]
pub(crate) struct Report {
    rows: Vec<Row>,
    require_all: bool,
    is_silent: bool,
    start: Instant,
}

#[derive(Debug)]
struct Row {
    step: String,
    outcome: Outcome,
    took: Duration,
}

impl Report {
    /// Starts a report; `require_all` turns what was not exercised into a failure.
    pub(crate) fn new(require_all: bool) -> Self {
        Self {
            rows: Vec::new(),
            require_all,
            is_silent: false,
            start: Instant::now(),
        }
    }

    /// A report that prints nothing but failures, and those to standard error.
    pub(crate) fn silent(require_all: bool) -> Self {
        Self {
            is_silent: true,
            ..Self::new(require_all)
        }
    }

    /// Whether a step has failed so far.
    pub(crate) fn has_failed(&self) -> bool {
        self.count(|outcome| matches!(outcome, Outcome::Failed(_))) > 0
    }

    /// Runs a step under a heading. An error is a failed step and the next
    /// one still runs; only an interruption ends everything.
    pub(crate) fn step(
        &mut self,
        name: &str,
        work: impl FnOnce() -> Result<Outcome>,
    ) -> Result<()> {
        process::check_interrupted()?;
        if !self.is_silent {
            heading(name);
        }
        let start = Instant::now();
        let outcome = match work() {
            Ok(outcome) => outcome,
            Err(error) if error.is::<Interrupted>() => return Err(error),
            Err(error) => Outcome::Failed(format!("{error:#}")),
        };
        let took = start.elapsed();
        let (word, colour, detail) = outcome.describe();
        match (self.is_silent, &outcome) {
            (false, _) => println!("{} in {}: {detail}", paint(word, colour), seconds(took)),
            (true, Outcome::Failed(_)) => eprintln!("{name}: {word}: {detail}"),
            (true, _) => {}
        }
        self.rows.push(Row {
            step: name.to_owned(),
            outcome,
            took,
        });
        Ok(())
    }

    /// Prints the table; `true` if nothing failed.
    pub(crate) fn finish(self) -> bool {
        heading("Summary");
        let width = self
            .rows
            .iter()
            .map(|row| row.step.chars().count())
            .max()
            .unwrap_or(0);
        for row in &self.rows {
            let (word, colour, detail) = row.outcome.describe();
            let word = paint(&format!("{word:<13}"), colour);
            // Only a detail's first line fits a table; the step itself printed the rest.
            let detail = detail.lines().next().unwrap_or_default();
            let took = seconds(row.took);
            println!("  {:<width$}  {word}  {took:>8}  {detail}", row.step);
        }
        let failed = self.count(|outcome| matches!(outcome, Outcome::Failed(_)));
        let missed = self.count(|outcome| matches!(outcome, Outcome::NotExercised(_)));
        let steps = self.rows.len();
        let took = seconds(self.start.elapsed());
        println!("{steps} steps in {took}: {failed} failed, {missed} not exercised");
        if missed > 0 && self.require_all {
            println!("--require-all: what was not exercised counts as failed");
        }
        failed == 0 && (missed == 0 || !self.require_all)
    }

    fn count(&self, which: impl Fn(&Outcome) -> bool) -> usize {
        self.rows.iter().filter(|row| which(&row.outcome)).count()
    }
}

impl Outcome {
    fn describe(&self) -> (&'static str, Colour, &str) {
        match self {
            Self::Passed(detail) => ("passed", Colour::Green, detail),
            Self::Failed(detail) => ("FAILED", Colour::Red, detail),
            Self::NotExercised(detail) => ("not exercised", Colour::Yellow, detail),
        }
    }
}

/// Prints a step's heading.
pub(crate) fn heading(name: &str) {
    println!("\n{}", paint(&format!("== {name}"), Colour::Bold));
}

#[derive(Debug, Clone, Copy)]
enum Colour {
    Bold = 1,
    Red = 31,
    Green = 32,
    Yellow = 33,
}

fn paint(text: &str, colour: Colour) -> String {
    let plain = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    if plain || !std::io::stdout().is_terminal() {
        return text.to_owned();
    }
    format!("\x1b[{}m{text}\x1b[0m", colour as u8)
}

fn seconds(took: Duration) -> String {
    format!("{:.1} s", took.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(require_all: bool, outcome: Outcome) -> bool {
        let mut report = Report::new(require_all);
        report.step("a step", || Ok(outcome)).unwrap();
        report.finish()
    }

    #[test]
    fn what_was_not_exercised_fails_only_when_all_is_required() {
        let missing = Outcome::NotExercised("no such server".to_owned());
        assert!(report(false, missing.clone()));
        assert!(!report(true, missing));
    }

    #[test]
    fn a_failed_step_fails_the_whole() {
        assert!(!report(false, Outcome::Failed("broken".to_owned())));
        assert!(report(true, Outcome::Passed(String::new())));
    }

    #[test]
    fn an_error_is_a_failed_step_and_the_next_one_runs() {
        let mut report = Report::new(false);
        report.step("first", || anyhow::bail!("broken")).unwrap();
        report
            .step("second", || Ok(Outcome::Passed(String::new())))
            .unwrap();
        assert_eq!(report.rows.len(), 2);
        assert!(!report.finish());
    }
}
