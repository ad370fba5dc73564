//! A Python with clients of brokers that are not ours, for the tests that hear and ask those.

use std::fs;
use std::path::PathBuf;

use anyhow::Result;

use crate::install::{self, Package};
use crate::process;
use crate::report::{Outcome, Report};
use crate::servers::Policy;
use crate::workspace::Workspace;

/// What the clients are, with hashes.
const REQUIREMENTS: &str = "tests/interop/requirements.txt";
/// The private environment among the workspace's tools.
const ENVIRONMENT: &str = "interop";

/// Makes sure that the clients are there, if that may be, and tells the Python that has them.
pub(crate) fn step(
    workspace: &Workspace,
    policy: Policy,
    report: &mut Report,
) -> Result<Option<PathBuf>> {
    let environment = workspace.tools.join(ENVIRONMENT);
    let python = environment.join("bin/python");
    let mut found = None;
    report.step("find Python clients", || {
        let required = fs::read_to_string(workspace.root.join(REQUIREMENTS))?;
        // It says what the environment holds, and is there only when all of it is.
        let marker = environment.join("requirements.txt");
        let is_there = || fs::read_to_string(&marker).is_ok_and(|holds| holds == required);
        let how = if is_there() {
            "installed"
        } else if policy.install {
            let _ = fs::remove_file(&marker);
            let listed = workspace.root.join(REQUIREMENTS);
            if let Err(error) = install::with_pip(&environment, &Package::Listed(&listed)) {
                process::check_interrupted()?;
                let why = format!("the clients can't be installed ({error:#})");
                return Ok(Outcome::NotExercised(why));
            }
            fs::write(&marker, &required)?;
            "installed now"
        } else {
            let why = "the clients are not installed, and installing is switched off";
            return Ok(Outcome::NotExercised(why.to_owned()));
        };
        found = Some(python.clone());
        Ok(Outcome::Passed(format!("{how}: {}", pinned(&required))))
    })?;
    Ok(found)
}

/// The packages and their versions, without hashes and conditions.
fn pinned(requirements: &str) -> String {
    let words = requirements
        .lines()
        .filter_map(|line| line.split_whitespace().next());
    let pins: Vec<_> = words.filter(|word| word.contains("==")).collect();
    pins.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packages_are_told_by_name_and_version() {
        let text =
            "# a == b?\na==1 ; python_full_version < \"3.11\" \\\n    --hash=sha256:0\nb==2 \\\n";
        assert_eq!(pinned(text), "a==1 b==2");
    }

    #[test]
    fn every_package_is_pinned_with_a_hash() {
        let text = include_str!("../../../tests/interop/requirements.txt");
        let packages = text
            .lines()
            .filter(|line| line.starts_with(|first: char| first.is_ascii_alphanumeric()));
        let mut count = 0;
        for line in packages {
            assert!(line.contains("==") && line.ends_with('\\'), "{line}");
            count += 1;
        }
        assert!(count > 5 && pinned(text).contains("cloudevents=="));
    }
}
