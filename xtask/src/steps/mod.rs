//! What each task does, step by step.

pub(crate) mod bench;
pub(crate) mod book;
pub(crate) mod ci;
pub(crate) mod demo;
mod fault_points;
pub(crate) mod faults;
mod foreign_clients;
pub(crate) mod servers;
pub(crate) mod test;
pub(crate) mod tidy;

use std::process::Command;

use anyhow::Result;

use crate::process;
use crate::report::Outcome;

/// Runs a command as the whole of a step.
fn outcome_of(command: &mut Command) -> Result<Outcome> {
    let status = process::run(command)?;
    Ok(if status.success() {
        Outcome::Passed(String::new())
    } else {
        Outcome::Failed(process::describe(status))
    })
}
