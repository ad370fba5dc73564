//! Measures the framework side by side with hand-written code, with a plain read of the table and
//! with its peers. `cargo xtask bench` builds it, starts a server for it and runs it.

mod backlog;
mod bench;
mod child;
mod cli;
mod contest;
mod domain;
mod line;
mod load;
mod plot;
mod postgres;
mod report;
mod sections;

use std::process::ExitCode;

use anyhow::Result;
use clap::Parser as _;

use crate::bench::Bench;
use crate::cli::{Cli, Role};
use crate::line::Line;

#[tokio::main]
async fn main() -> ExitCode {
    match run(Cli::parse()).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("bench: {error:#}");
            ExitCode::FAILURE
        }
    }
}

async fn run(cli: Cli) -> Result<()> {
    if let Some(Role::Relay(role)) = &cli.role {
        return child::relay(&cli, role).await;
    }
    if cli.list {
        for section in sections::ALL {
            println!("{:<12} {}", section.name, section.about);
        }
        return Ok(());
    }
    if !cli.lines.is_empty() {
        let lines: Result<Vec<_>> = cli.lines.iter().map(|file| line::read(file)).collect();
        let lines = lines?.concat();
        if cli.json {
            report::print_json(&lines)?;
        }
        return show(&cli, &lines);
    }
    let chosen = sections::chosen(&cli.only, cli.quick)?;
    let bench = Bench::new(&cli)?;
    let mut lines = Vec::new();
    for section in chosen {
        let found = (section.run)(&bench).await;
        let found = found.map_err(|error| error.context(format!("section {}", section.name)))?;
        if cli.json {
            // At once: a run that is ended early has told what it knows.
            report::print_json(&found)?;
        }
        lines.extend(found);
    }
    bench.progress.finish();
    show(&cli, &lines)
}

/// A table, unless the lines were told as JSON already, and the picture.
fn show(cli: &Cli, lines: &[Line]) -> Result<()> {
    if !cli.json {
        report::print_table(lines);
    }
    match &cli.plot {
        Some(file) => plot::draw(lines, file),
        None => Ok(()),
    }
}
