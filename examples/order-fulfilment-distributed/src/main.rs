//! The three contexts of `order-fulfilment` as a service each, with a database of its own, one relay
//! beside them and a real broker between.
//!
//! Domain, handlers, intake and books are imported from `order-fulfilment`. What is here is what a
//! team adds to run them apart: connections, signals, and a look at all of it from outside.

mod args;
mod broker;
mod database;
mod place;
mod process;
mod reconcile;
mod relay;
mod service;
mod status;

use std::io::{ErrorKind, Write};
use std::process::ExitCode;

use anyhow::Context;
use clap::Parser;
use tracing_subscriber::EnvFilter;

use crate::args::{Args, Command};
use crate::database::Server;
use crate::process::Shutdown;

/// Without `RUST_LOG`, a process says itself how it fares, once when that changes.
const LOGGED: &str = "order_fulfilment_distributed=info";

#[tokio::main]
async fn main() -> ExitCode {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new(LOGGED));
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(false)
        .init();
    match run(Args::parse()).await {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(error) => {
            eprintln!("order-fulfilment-distributed: {}", sentence(&error));
            ExitCode::from(2)
        }
    }
}

/// Runs a subcommand; `Ok(false)` when it did its work and there is something to look at.
async fn run(args: Args) -> anyhow::Result<bool> {
    let server = Server::parse(&args.database)?;
    match args.command {
        Command::Service(options) => {
            let (broker, shutdown) = (
                args.broker.open(Some(&options.instance))?,
                Shutdown::watch()?,
            );
            service::run(&server, broker, &options, shutdown).await?;
            Ok(true)
        }
        Command::Relay(options) => {
            let (broker, shutdown) = (args.broker.open(None)?, Shutdown::watch()?);
            relay::run(&server, broker, &options, shutdown).await?;
            Ok(true)
        }
        Command::Place(options) => place::run(&server, &options).await,
        Command::Status { json } => {
            let status = status::Status::read(&mut server.readers().await?).await?;
            print(&status.print(json)?)?;
            Ok(true)
        }
        Command::Reconcile { json } => {
            let reconciliation = reconcile::Reconciliation::make(&server).await?;
            print(&reconciliation.print(json)?)?;
            Ok(reconciliation.is_balanced())
        }
    }
}

fn print(text: &str) -> anyhow::Result<()> {
    match writeln!(std::io::stdout(), "{text}") {
        // A reader such as `head` has seen enough.
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        written => written.context("the result can't be written to standard output"),
    }
}

/// An error and its causes in one line, without those that the line quotes already.
fn sentence(error: &anyhow::Error) -> String {
    let mut line = error.to_string();
    for cause in error.chain().skip(1).map(ToString::to_string) {
        if !line.contains(&cause) {
            line = format!("{line}: {cause}");
        }
    }
    line
}
