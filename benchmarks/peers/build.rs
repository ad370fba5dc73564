//! Tells the program which versions of the peers are locked, and gives it the tables of one of them.

use anyhow::Result;
use outbox_bench_locked::Locked;

fn main() -> Result<()> {
    let locked = Locked::read()?;
    for peer in [
        "awa",
        "graphile_worker",
        "hexeract-outbox-sql",
        "outbox-core",
        "outbox-postgres",
        "pgmq",
        "riverqueue",
    ] {
        locked.export_version(peer)?;
    }
    // Without the tables of its optional dead-letter feature.
    let init = |file: &str| file.ends_with("_init.sql");
    locked.copy_migrations("outbox-postgres", init, "outbox_postgres.sql")
}
