//! `cargo xtask book`: builds the book and checks its listings and links.

use std::process::{Command, Stdio};

use anyhow::Result;

use crate::process;
use crate::report::{Outcome, Report};
use crate::tools::MDBOOK;
use crate::workspace::Workspace;

/// Runs the task; `false` if the book has a fault.
pub(crate) fn run(workspace: &Workspace) -> Result<bool> {
    let mut report = Report::new(false);
    step(workspace, true, &mut report)?;
    report.finish()
}

/// Builds the book as one step.
pub(super) fn step(workspace: &Workspace, install: bool, report: &mut Report) -> Result<()> {
    report.step("book", || {
        let mdbook = match MDBOOK.locate(workspace, install) {
            Ok(mdbook) => mdbook,
            Err(error) => return Ok(Outcome::NotExercised(format!("{error:#}"))),
        };
        // mdBook only warns of a listing that is missing, so a warning is a failure.
        let mut warnings = 0;
        let mut command = Command::new("sh");
        command
            .args(["-c", r#"exec "$0" build "$1" 2>&1"#])
            .arg(mdbook);
        command
            .arg(workspace.root.join("book"))
            .stderr(Stdio::inherit());
        let status = process::run_lines(&mut command, |line| {
            warnings += usize::from(line.contains("WARN") || line.contains("ERROR"));
            process::echo(line)
        })?;
        if !status.success() {
            return Ok(Outcome::Failed(format!(
                "mdbook {}",
                process::describe(status)
            )));
        }
        Ok(match warnings {
            0 => Outcome::Passed(String::new()),
            count => Outcome::Failed(format!("{count} warnings")),
        })
    })
}
