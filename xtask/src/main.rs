//! The tasks of this workspace, run as `cargo xtask <task>`.
//!
//! `test` is the one test command: it starts throw-away servers, runs every
//! test and the book, and lists at the end what it could not exercise.

mod cli;
mod install;
mod process;
mod report;
mod servers;
mod steps;
mod tidy;
mod tools;
mod workspace;

use std::process::ExitCode;

use clap::Parser;

use crate::cli::{Cli, Task};
use crate::process::Interrupted;
use crate::workspace::Workspace;

fn main() -> ExitCode {
    match run(Cli::parse().task) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) if error.is::<Interrupted>() => {
            eprintln!("xtask: {error}");
            ExitCode::from(130)
        }
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Runs one task; `false` means that it ran to its end and found faults.
fn run(task: Task) -> anyhow::Result<bool> {
    process::watch_signals()?;
    let workspace = Workspace::locate()?;
    match task {
        Task::Test(options) => steps::test::run(&workspace, &options),
        Task::Ci => steps::ci::run(&workspace),
        Task::Tidy => steps::tidy::run(&workspace),
        Task::Book => steps::book::run(&workspace),
        Task::Faults(options) => steps::faults::matrix(&workspace, &options),
        Task::Soak(options) => steps::faults::soak(&workspace, &options),
        Task::Bench(options) => steps::bench::run(&workspace, &options),
        Task::Demo(options) => steps::demo::run(&workspace, &options),
        Task::Servers(options) => steps::servers::run(&workspace, &options),
    }
}
