//! Fulfils a file of orders by events between three bounded contexts, and checks the books.

mod program;

use std::process::ExitCode;

use clap::Parser;

#[tokio::main]
async fn main() -> ExitCode {
    match program::run(program::Args::parse()).await {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(error) => {
            eprintln!("order-fulfilment: {error:#}");
            ExitCode::from(2)
        }
    }
}
