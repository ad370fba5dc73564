//! The command line, which is the same for every program that measures systems.

use std::process::ExitCode;

use anyhow::{Context, Result, ensure};
use clap::{Args, Parser, Subcommand};
use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::LevelFilter;

use crate::bench;
use crate::elsewhere::Elsewhere;
use crate::system::System;

/// Messages of a measurement, unless it is said how many.
const FULL: u64 = 1_000_000;
const QUICK: u64 = 100_000;

#[derive(Debug, Parser)]
#[command(about = "Measures how fast queues and outboxes on PostgreSQL drain a backlog")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Shows the systems, their versions and what they do with a row
    List {
        /// As JSON, a line a system
        #[arg(long)]
        json: bool,
    },
    /// Fills a database of its own with messages and measures how long one system takes to drain it
    Run(Run),
}

#[derive(Debug, Args)]
struct Run {
    /// One of those that `list` shows
    #[arg(long)]
    system: String,
    /// A server on which databases may be created, such as postgres://postgres@127.0.0.1/postgres
    #[arg(long)]
    postgres: String,
    /// How many messages; 1,000,000 if not given
    #[arg(long)]
    rows: Option<u64>,
    /// Makes it 100,000 if not given
    #[arg(long)]
    quick: bool,
    /// Workers, in place of what was found best
    #[arg(long)]
    workers: Option<u32>,
    /// Messages a batch, in place of what was found best
    #[arg(long)]
    batch: Option<u32>,
}

/// Does what the command line says with these systems, and with those that have other programs.
pub async fn main(systems: Vec<Box<dyn System>>, elsewhere: &[Elsewhere]) -> ExitCode {
    let filter = EnvFilter::builder()
        .with_default_directive(LevelFilter::ERROR.into())
        .from_env_lossy();
    // Standard output is for the result alone.
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .init();
    let done = match Cli::parse().command {
        Command::List { json } => list(&systems, elsewhere, json),
        Command::Run(run) => measure(&systems, elsewhere, run).await,
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn list(systems: &[Box<dyn System>], elsewhere: &[Elsewhere], json: bool) -> Result<()> {
    for system in systems {
        let about = system.about();
        if json {
            println!("{}", serde_json::to_string(&about)?);
            continue;
        }
        println!(
            "{:20} {:30} {:18} {}",
            about.name, about.version, about.license, about.work
        );
    }
    for other in elsewhere {
        if let Err(error) = other.run() {
            eprintln!("left out: {error:#}");
        }
    }
    Ok(())
}

async fn measure(systems: &[Box<dyn System>], elsewhere: &[Elsewhere], run: Run) -> Result<()> {
    if let Some(other) = elsewhere.iter().find(|other| other.system == run.system) {
        let status = other.run()?;
        ensure!(status.success(), "{} ended with {status}", other.program);
        return Ok(());
    }
    let system = systems
        .iter()
        .find(|system| system.about().name == run.system)
        .with_context(|| format!("there is no system `{}`; `list` shows them", run.system))?;
    let mut tuning = system.about().tuning;
    tuning.workers = run.workers.unwrap_or(tuning.workers);
    tuning.batch = run.batch.unwrap_or(tuning.batch);
    let rows = run.rows.unwrap_or(if run.quick { QUICK } else { FULL });
    ensure!(rows > 0, "there must be at least one message to measure");
    let outcome = bench::run(system.as_ref(), &run.postgres, rows, tuning).await?;
    println!("{}", serde_json::to_string(&outcome)?);
    Ok(())
}
