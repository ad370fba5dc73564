//! Measures how fast obix drains a backlog. The command line is that of `outbox-bench-peers`.

mod pool;
mod subscriber;

use std::process::ExitCode;

#[tokio::main]
async fn main() -> ExitCode {
    outbox_bench_harness::main(vec![Box::new(subscriber::Obix)], &[]).await
}
