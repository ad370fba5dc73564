//! Measures how fast other queues and outboxes on PostgreSQL drain a backlog.
//!
//! The relay of the framework and hand-written loops are measured elsewhere, by the crate `benchmarks`, which
//! runs this program for the peers.

mod pool;
mod systems;

use std::process::ExitCode;

use outbox_bench_harness::Elsewhere;

/// In the folder of that name; its manifest tells why.
const OBIX: Elsewhere = Elsewhere {
    system: "obix",
    program: "outbox-bench-peers-obix",
};

#[tokio::main]
async fn main() -> ExitCode {
    outbox_bench_harness::main(systems::all(), &[OBIX]).await
}
