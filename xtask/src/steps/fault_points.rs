//! A user's build holds no fault point.

use std::fs;

use anyhow::{Context, Result};

use crate::process;
use crate::report::{Outcome, Report};
use crate::workspace::Workspace;

/// A program of a user's kind, which enables no feature but a database.
const PROGRAM: &str = "quick-start";
const FEATURE: &str = "outbox-runtime/fault-points";
/// What every program holds that was built with fault points.
const TRACE: &[u8] = b"a test lets `";

/// Builds a program without the points and with them, and looks for their trace in both: the second
/// shows that the first would be found.
pub(super) fn step(workspace: &Workspace, report: &mut Report) -> Result<()> {
    report.step("no fault point in a user's build", || {
        if has_points(workspace, &["--features", FEATURE])? == Some(false) {
            return Ok(Outcome::Failed(
                "the trace that this step looks for is no longer in the fault points".to_owned(),
            ));
        }
        Ok(match has_points(workspace, &[])? {
            Some(false) => Outcome::Passed(format!("{PROGRAM} has none")),
            Some(true) => Outcome::Failed(format!("{PROGRAM} has them without asking")),
            None => Outcome::Failed(format!("{PROGRAM} does not build")),
        })
    })
}

/// Whether the program has fault points; nothing if it does not build.
fn has_points(workspace: &Workspace, features: &[&str]) -> Result<Option<bool>> {
    let mut cargo = workspace.cargo();
    cargo.args(["build", "--package", PROGRAM]).args(features);
    if !process::run(&mut cargo)?.success() {
        return Ok(None);
    }
    let program = workspace.target.join("debug").join(PROGRAM);
    let bytes = fs::read(&program)
        .with_context(|| format!("cargo built no program at {}", program.display()))?;
    Ok(Some(holds(&bytes, TRACE)))
}

fn holds(bytes: &[u8], trace: &[u8]) -> bool {
    bytes.windows(trace.len()).any(|window| window == trace)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trace_is_found_wherever_it_is() {
        let mut program = vec![0; 100];
        assert!(!holds(&program, TRACE));
        program.extend(TRACE);
        assert!(holds(&program, TRACE));
        program.push(1);
        assert!(holds(&program, TRACE));
    }
}
