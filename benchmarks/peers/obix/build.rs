//! Tells the program which version of obix is locked, and gives it its tables.

use anyhow::Result;
use outbox_bench_locked::Locked;

fn main() -> Result<()> {
    let locked = Locked::read()?;
    locked.export_version("job")?;
    locked.export_version("obix")?;
    locked.copy_migrations("obix", |_| true, "obix.sql")
}
