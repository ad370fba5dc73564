//! One measurement: fill, drain, ask the tables, check.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use serde::Serialize;
use sqlx::PgConnection;

use crate::database::Database;
use crate::seen::Seen;
use crate::system::{Done, System, Tuning};

/// How long nothing may be handled before a run is given up.
const STALL: Duration = Duration::from_secs(60);
/// How often the tables are asked while messages are still being handled: seldom enough to cost nothing.
const ASK_EARLY: Duration = Duration::from_secs(5);
/// How often they are asked once every message was handled and only the marks are missing.
const ASK_LATE: Duration = Duration::from_millis(2);

/// What came out.
#[derive(Debug, Serialize)]
pub(crate) struct Outcome {
    system: &'static str,
    version: &'static str,
    rows: u64,
    seconds: f64,
    rows_per_second: f64,
    handled: u64,
    duplicates: u64,
}

/// Measures how long `system` takes for a backlog of `rows` messages.
pub(crate) async fn run(
    system: &dyn System,
    url: &str,
    rows: u64,
    tuning: Tuning,
) -> Result<Outcome> {
    let name = system.about().name;
    let database = Database::create(url, name).await?;
    let outcome = measure(system, &database, rows, tuning).await;
    // A failed run cleans up as well, but what failed first is what matters.
    let dropped = database.drop().await;
    let outcome = outcome.with_context(|| format!("{name} failed"))?;
    dropped?;
    Ok(outcome)
}

async fn measure(
    system: &dyn System,
    database: &Database,
    rows: u64,
    tuning: Tuning,
) -> Result<Outcome> {
    let about = system.about();
    system
        .install(database)
        .await
        .context("cannot install its tables")?;
    system
        .fill(database, rows)
        .await
        .context("cannot put the messages in")?;
    let mut watch = database.connect().await?;
    settle(&mut watch).await?;
    let filled = number(&mut watch, about.filled).await?;
    ensure!(
        filled == Some(i64::try_from(rows)?),
        "{filled:?} of {rows} messages are in its tables before the start"
    );

    let seen = Arc::new(Seen::new(rows));
    let mut drain = system.drain(database, Arc::clone(&seen), tuning).await?;
    let started = Instant::now();
    drain.start().await.context("cannot start")?;
    let done = until_done(&mut watch, about.done, &seen, rows).await;
    let seconds = started.elapsed().as_secs_f64();
    let stopped = drain.stop().await;
    done?;
    stopped.context("cannot stop")?;
    seen.check()?;
    Ok(Outcome {
        system: about.name,
        version: about.version,
        rows,
        seconds,
        rows_per_second: rows as f64 / seconds,
        handled: seen.distinct(),
        duplicates: seen.duplicates(),
    })
}

/// Puts the database into the state of one that has been at rest: statistics and visibility up to date, and
/// nothing of the fill left to write.
async fn settle(connection: &mut PgConnection) -> Result<()> {
    for statement in ["VACUUM (ANALYZE)", "CHECKPOINT"] {
        if let Err(error) = sqlx::raw_sql(statement).execute(&mut *connection).await {
            eprintln!("{statement} is not possible, so figures may vary more: {error}");
        }
    }
    // For this connection alone. What it asks shall not read a whole table of dead rows.
    sqlx::raw_sql("SET enable_seqscan = off")
        .execute(connection)
        .await?;
    Ok(())
}

/// Returns when the system's own tables say that everything is done.
///
/// The count in memory says only from when on it is worth to ask often.
async fn until_done(
    connection: &mut PgConnection,
    done: Done,
    seen: &Seen,
    rows: u64,
) -> Result<()> {
    let mut asked = Instant::now();
    let mut handled = 0;
    let mut progress = Instant::now();
    loop {
        let now_handled = seen.distinct();
        if now_handled > handled {
            handled = now_handled;
            progress = Instant::now();
        }
        let wait = if handled >= rows { ASK_LATE } else { ASK_EARLY };
        if asked.elapsed() >= wait {
            if is_done(connection, done, rows).await? {
                return Ok(());
            }
            asked = Instant::now();
        }
        if progress.elapsed() > STALL {
            bail!(
                "no progress for {} s: {handled} of {rows} messages were handled, and its tables say it is not done",
                STALL.as_secs()
            );
        }
        tokio::time::sleep(ASK_LATE).await;
    }
}

async fn is_done(connection: &mut PgConnection, done: Done, rows: u64) -> Result<bool> {
    Ok(match done {
        Done::NothingLeft(sql) => number(connection, sql).await?.is_none(),
        Done::Reached(sql) => number(connection, sql).await? >= Some(i64::try_from(rows)?),
    })
}

/// The first column of the first row, if there is one.
async fn number(connection: &mut PgConnection, sql: &'static str) -> Result<Option<i64>> {
    sqlx::query_scalar::<_, i64>(sql)
        .fetch_optional(connection)
        .await
        .with_context(|| format!("cannot ask `{sql}`"))
}
