//! `cargo xtask tidy`: the architecture rules.

use anyhow::Result;

use crate::report::{Outcome, Report};
use crate::tidy;
use crate::workspace::Workspace;

/// Runs the task; `false` if a rule is broken.
pub(crate) fn run(workspace: &Workspace) -> Result<bool> {
    let mut report = Report::new(false);
    step(workspace, &mut report)?;
    Ok(report.finish())
}

/// Checks every rule as one step.
pub(super) fn step(workspace: &Workspace, report: &mut Report) -> Result<()> {
    report.step("tidy: architecture rules", || {
        let findings = tidy::check(&workspace.root)?;
        for finding in &findings.broken {
            println!("{finding}");
        }
        Ok(if findings.broken.is_empty() {
            Outcome::Passed(format!("{} files keep every rule", findings.files))
        } else {
            Outcome::Failed(format!("{} breaches", findings.broken.len()))
        })
    })
}
