mod ours;
mod peers;
mod select;
mod skip_locked;

use anyhow::Result;
use sqlx::postgres::PgPool;

pub(crate) use self::ours::{Drain, Nowhere, start_anew, until_recorded, until_settled};
use self::peers::Peer;
use self::select::PlainSelect;
use self::skip_locked::{Marks, SkipLocked};
use crate::bench::Bench;
use crate::contest::{Contestant, Samples, measure, measure_cold, pair};
use crate::line::{Goal, Line};
use crate::postgres::{Database, script};

/// So many aggregates have raised the events of a backlog, in turn.
pub(crate) const AGGREGATES: i64 = 10_000;

pub(crate) async fn run(bench: &Bench) -> Result<Vec<Line>> {
    let database = bench.server.database("relay").await?;
    let rows = bench.rows(1_000_000, 100_000);
    let pool = database.pool(4).await?;
    database.outbox(&pool).await?;
    bench.progress.say(format!("filling in {rows} rows"));
    fill(&pool, rows).await?;
    let mut lines = beside_hand_written(bench, &database, rows).await?;
    lines.extend(beside_peers(bench, &database).await?);
    lines.push(large_backlog(bench, &database).await?);
    pool.close().await;
    database.drop().await?;
    Ok(lines)
}

async fn beside_hand_written(bench: &Bench, database: &Database, rows: i64) -> Result<Vec<Line>> {
    let mut ours = Drain::new(database.clone(), rows).await?;
    let mut select = PlainSelect::new(database.clone(), rows);
    let mut update = SkipLocked::new(database.clone(), rows, Marks::Status).await?;
    let mut delete = SkipLocked::new(database.clone(), rows, Marks::Deletion).await?;
    let samples = measure(
        bench,
        &mut [&mut ours, &mut select, &mut update, &mut delete],
    )
    .await?;
    let mut samples = samples
        .into_iter()
        .filter_map(|figures| figures.into_iter().next());
    let mut next = || samples.next().unwrap_or_default();
    let [ours, select, update, delete] = [next(), next(), next(), next()];
    let line = |beside: &str, goal, theirs| {
        let name = format!("relay, drain {rows} rows | {beside}");
        Line::compare(name, "rows/s", Goal::AtLeast(goal), &ours, theirs)
    };
    Ok(vec![
        line("plain SELECT", 0.7, &select),
        line("SKIP LOCKED, UPDATE of a status", 3.0, &update),
        line("SKIP LOCKED, DELETE", 3.0, &delete),
    ])
}

/// Peers do so much for each message that a shorter backlog tells their pace as well.
async fn beside_peers(bench: &Bench, database: &Database) -> Result<Vec<Line>> {
    let Some(program) = &bench.peers else {
        eprintln!("the peers are left out: there is no program for them");
        return Ok(Vec::new());
    };
    let rows = bench.rows(50_000, 10_000);
    let pool = database.pool(1).await?;
    fill(&pool, rows).await?;
    pool.close().await;
    let mut peers = Vec::new();
    for system in peers::list(program).await? {
        let url = bench.server.url().to_owned();
        peers.push(Peer::new(program.clone(), system, url, rows));
    }
    let mut ours = Drain::new(database.clone(), rows).await?;
    let mut contestants: Vec<&mut dyn Contestant> = vec![&mut ours];
    contestants.extend(peers.iter_mut().map(|peer| peer as &mut dyn Contestant));
    let samples = measure_cold(bench, &mut contestants).await?;
    let mut samples = samples
        .into_iter()
        .map(|figures| figures.into_iter().next().unwrap_or_default());
    let ours = samples.next().unwrap_or_default();
    let theirs: Vec<Samples> = samples.collect();
    Ok(peers
        .iter()
        .zip(&theirs)
        .map(|(peer, theirs)| {
            let name = format!("relay, drain {rows} rows | {}", peer.name());
            Line::compare(name, "rows/s", Goal::AtLeast(2.0), &ours, theirs)
        })
        .collect())
}

async fn large_backlog(bench: &Bench, database: &Database) -> Result<Line> {
    let large = bench.rows(5_000_000, 300_000);
    let small = bench.rows(100_000, 50_000);
    let other = bench.server.database("relay_large").await?;
    for (database, rows) in [(&other, large), (database, small)] {
        let pool = database.pool(1).await?;
        database.outbox(&pool).await?;
        bench.progress.say(format!("filling in {rows} rows"));
        fill(&pool, rows).await?;
        pool.close().await;
    }
    let mut ours = Drain::new(other.clone(), large).await?;
    let mut theirs = Drain::new(database.clone(), small).await?;
    let (ours, theirs) = pair(bench, &mut ours, &mut theirs).await?;
    other.drop().await?;
    Ok(Line::compare(
        format!("relay, a backlog of {large} rows | one of {small}"),
        "rows/s",
        Goal::AtLeast(0.95),
        &ours,
        &theirs,
    ))
}

/// Fills the log with so many rows, their payloads of 300 bytes, and nothing else.
pub(crate) async fn fill(pool: &PgPool, rows: i64) -> Result<()> {
    script(pool, "TRUNCATE outbox_message RESTART IDENTITY").await?;
    append(pool, 0, rows).await?;
    script(pool, "VACUUM ANALYZE outbox_message").await?;
    script(pool, "CHECKPOINT").await
}

/// Writes so many rows behind the first ones, in one statement.
pub(crate) async fn append(pool: &PgPool, first: i64, rows: i64) -> Result<()> {
    sqlx::query(
        "INSERT INTO outbox_message (
            shard, message_id, event_type, schema_version, aggregate_type, aggregate_id, sequence,
            payload, correlation_id, producer
        )
        SELECT
            (n % $2) % 64, gen_random_uuid(), 'bench.deposited', 1, 'Account', (n % $2)::text,
            n / $2 + 1, ('{\"n\":' || n || ',\"note\":\"' || repeat('x', 300 - 16 - length(n::text)) || '\"}')::json,
            gen_random_uuid()::text, 'bench'
        FROM generate_series($3, $3 + $1 - 1) AS n",
    )
    .bind(rows)
    .bind(AGGREGATES)
    .bind(first)
    .execute(pool)
    .await?;
    Ok(())
}
