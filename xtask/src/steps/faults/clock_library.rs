//! libfaketime, which lets a test move the clock of a process.

use std::fs;

use anyhow::Result;

use crate::install;
use crate::report::{Outcome, Report};
use crate::servers::Policy;

/// Makes sure that it is there, if that may be.
pub(crate) fn step(policy: Policy, report: &mut Report) -> Result<()> {
    report.step("find libfaketime", || {
        if is_installed() {
            return Ok(Outcome::Passed("installed".to_owned()));
        }
        if !policy.install {
            let why = "libfaketime is not installed, and installing is switched off";
            return Ok(Outcome::NotExercised(why.to_owned()));
        }
        if let Err(error) = install::with_apt(&["faketime"]) {
            return Ok(Outcome::NotExercised(format!(
                "libfaketime is not installed ({error:#})"
            )));
        }
        Ok(match is_installed() {
            true => Outcome::Passed("installed now".to_owned()),
            false => Outcome::NotExercised("the package `faketime` holds no library".to_owned()),
        })
    })
}

/// Whether it is where Debian puts it, which is where the tests look.
fn is_installed() -> bool {
    let folders = fs::read_dir("/usr/lib").into_iter().flatten().flatten();
    folders
        .map(|folder| folder.path().join("faketime"))
        .any(|folder| folder.join("libfaketime.so.1").is_file())
}
