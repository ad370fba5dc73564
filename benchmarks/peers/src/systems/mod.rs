//! The systems under measure, each in a file of its own.

mod awa;
mod graphile_worker;
mod hexeract;
mod outbox_postgres;
mod pgmq;
mod riverqueue;

use outbox_bench_harness::System;

/// All of them, by name.
pub(crate) fn all() -> Vec<Box<dyn System>> {
    vec![
        Box::new(awa::Awa),
        Box::new(graphile_worker::GraphileWorker),
        Box::new(hexeract::Hexeract),
        Box::new(outbox_postgres::OutboxPostgres),
        Box::new(pgmq::Pgmq),
        Box::new(riverqueue::Riverqueue),
    ]
}
