//! `cargo xtask test`: all tests against throw-away servers.

use std::path::Path;

use anyhow::Result;
use outbox_servers::{Kind, PYTHON};

use super::{book, demo, faults, foreign_clients, tidy};
use crate::cli::TestOptions;
use crate::process;
use crate::report::{Outcome, Report};
use crate::servers::{Policy, Servers};
use crate::workspace::Workspace;

/// Runs the task; `false` if anything failed.
pub(crate) fn run(workspace: &Workspace, options: &TestOptions) -> Result<bool> {
    let mut report = Report::new(options.require_all);
    steps(workspace, options, &mut report)?;
    Ok(report.finish())
}

/// The task's steps, for a report that may hold others too.
pub(super) fn steps(
    workspace: &Workspace,
    options: &TestOptions,
    report: &mut Report,
) -> Result<()> {
    let install = !options.no_install;
    let everything = options.filter.is_empty();
    if everything {
        tidy::step(workspace, report)?;
    }
    let policy = Policy {
        install,
        require_all: options.require_all,
    };
    faults::clock_library::step(policy, report)?;
    let python = foreign_clients::step(workspace, policy, report)?;
    let servers = Servers::start(&Kind::ALL, workspace, policy, report)?;
    report.step("cargo test", || {
        cargo_test(workspace, &servers, python.as_deref(), &options.filter)
    })?;
    drop(servers);
    if everything {
        demo::steps(workspace, policy, report)?;
        book::step(workspace, install, report)?;
    }
    Ok(())
}

fn cargo_test(
    workspace: &Workspace,
    servers: &Servers,
    python: Option<&Path>,
    filter: &[String],
) -> Result<Outcome> {
    let mut command = workspace.cargo();
    command
        .args([
            "test",
            "--workspace",
            "--all-features",
            "--no-fail-fast",
            "--",
        ])
        .args(filter);
    servers.announce_to(&mut command);
    if let Some(python) = python {
        command.env(PYTHON, python);
    }
    let mut counts = Counts::default();
    let status = process::run_lines(command, |line| {
        counts.read(line);
        println!("{line}");
    })?;
    if !status.success() {
        return Ok(Outcome::Failed(format!(
            "{counts}; cargo {}",
            process::describe(status)
        )));
    }
    if counts.passed == 0 {
        return Ok(Outcome::Failed(
            "no test ran: no name contains the filter".to_owned(),
        ));
    }
    Ok(Outcome::Passed(counts.to_string()))
}

/// The sum of all `test result:` lines.
#[derive(Debug, Default, PartialEq, Eq)]
struct Counts {
    passed: usize,
    failed: usize,
    ignored: usize,
}

impl Counts {
    fn read(&mut self, line: &str) {
        // test result: ok. 3 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.00s
        let Some((_, numbers)) = line
            .strip_prefix("test result: ")
            .and_then(|rest| rest.split_once(". "))
        else {
            return;
        };
        for part in numbers.split("; ") {
            match part.split_once(' ') {
                Some((number, "passed")) => self.passed += number.parse().unwrap_or(0),
                Some((number, "failed")) => self.failed += number.parse().unwrap_or(0),
                Some((number, "ignored")) => self.ignored += number.parse().unwrap_or(0),
                _ => {}
            }
        }
    }
}

impl std::fmt::Display for Counts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "{} passed, {} failed, {} ignored",
            self.passed, self.failed, self.ignored
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_of_all_test_programs_are_added_up() {
        let mut counts = Counts::default();
        counts.read("running 4 tests");
        counts.read("test result: ok. 3 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.00s");
        counts.read("test result: FAILED. 2 passed; 1 failed; 0 ignored; 0 measured; 7 filtered out; finished in 1.20s");
        assert_eq!(
            counts,
            Counts {
                passed: 5,
                failed: 1,
                ignored: 1
            }
        );
    }
}
