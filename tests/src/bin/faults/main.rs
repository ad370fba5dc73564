//! The processes of the fault matrix: the one that directs it, and its workers.
//!
//! `cargo xtask faults` and `cargo xtask soak` start it; so do the tests in `tests/faults.rs`. It
//! prints a JSON value a line.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing
)]

mod cells;
mod director;
mod handlers;
mod publisher;
mod report;
mod subscriber;
mod worker;
mod writers;

use std::process::ExitCode;

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .expect("a runtime");
    match (arguments.next().as_deref(), arguments.next()) {
        (Some("worker"), None) => runtime.block_on(worker::run()),
        (Some("matrix"), Some(options)) => runtime.block_on(director::matrix(&options)),
        (Some("soak"), Some(options)) => runtime.block_on(director::soak(&options)),
        _ => {
            eprintln!("started by `cargo xtask faults` and `cargo xtask soak`");
            ExitCode::FAILURE
        }
    }
}
