//! Fulfils a file of orders by events between three bounded contexts, and checks the books.

mod program;

use std::process::ExitCode;

use clap::Parser;
use tracing_subscriber::EnvFilter;

#[tokio::main]
async fn main() -> ExitCode {
    // Silent unless asked: `RUST_LOG=outbox_runtime=debug` shows what relay and consumers do.
    tracing_subscriber::fmt()
        .with_env_filter(EnvFilter::from_default_env())
        .with_writer(std::io::stderr)
        .init();
    match program::run(program::Args::parse()).await {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(error) => {
            eprintln!("order-fulfilment: {}", sentence(&error));
            ExitCode::from(2)
        }
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
