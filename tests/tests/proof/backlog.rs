use std::env;
use std::fs;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use outbox_runtime::broker::{PublishError, Publisher};
use outbox_runtime::{Message, Outbox};
use outbox_tests::{Fixture, TestDatabase};
use sqlx::postgres::PgPoolOptions;
use sqlx::sqlite::SqlitePoolOptions;

use crate::relays::{RunningRelay, options};

const ROWS: usize = 200_000;
/// The payloads alone are twice as much.
const MOST_KIB: usize = 100_000;
/// Where the program's database is. Without it, the program is not to run.
const DATABASE: &str = "OUTBOX_PROOF_BACKLOG";
const RESULT: &str = "memory has grown by KiB ";

/// A broker that is down for a while, so that the relay takes in as much as it ever does, and then
/// counts.
#[derive(Clone, Default)]
struct Counting {
    refusals: Arc<AtomicU32>,
    taken: Arc<AtomicUsize>,
}

#[async_trait]
impl Publisher for Counting {
    async fn publish(&self, messages: &[Message]) -> Vec<Result<(), PublishError>> {
        if self.refusals.fetch_add(1, Ordering::SeqCst) < 500 {
            let down = |_| Err(PublishError::transient("the broker is down"));
            return messages.iter().map(down).collect();
        }
        self.taken.fetch_add(messages.len(), Ordering::SeqCst);
        messages.iter().map(|_| Ok(())).collect()
    }
}

/// The program of the tests here, which start this binary with this test alone: a relay, and what
/// it costs.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn program() {
    let Ok(url) = env::var(DATABASE) else {
        return;
    };
    if url.starts_with("postgres") {
        let pool = PgPoolOptions::new().max_connections(4).connect(&url);
        drain(Outbox::new("test", pool.await.unwrap())).await;
    } else {
        let pool = SqlitePoolOptions::new().max_connections(4).connect(&url);
        drain(Outbox::new("test", pool.await.unwrap())).await;
    }
}

async fn drain<DB: TestDatabase>(outbox: Outbox<DB>) {
    let before = memory_kib("VmRSS:");
    let counting = Counting::default();
    let relay = RunningRelay::start_with(&outbox, counting.clone(), options());
    let draining = async {
        while counting.taken.load(Ordering::SeqCst) < ROWS {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    let in_time = tokio::time::timeout(Duration::from_secs(300), draining).await;
    assert!(in_time.is_ok(), "{}", counting.taken.load(Ordering::SeqCst));
    relay.stop().await;
    println!("{RESULT}{}", memory_kib("VmHWM:") - before);
}

/// A line of what Linux tells about this process.
fn memory_kib(name: &str) -> usize {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix(name));
    let words = line.unwrap().trim();
    words.trim_end_matches(" kB").parse().unwrap()
}

async fn start(url: &str) -> usize {
    let mut command = Command::new(env::current_exe().unwrap());
    command
        .args(["--exact", "backlog::program", "--nocapture"])
        .env(DATABASE, url);
    let output = tokio::task::spawn_blocking(move || command.output());
    let output = output.await.unwrap().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let result = text.lines().find_map(|line| line.strip_prefix(RESULT));
    let result = result.unwrap_or_else(|| {
        panic!("{text}{}", String::from_utf8_lossy(&output.stderr));
    });
    result.parse().unwrap()
}

/// The statement that fills the log; `rows` gives numbers `n`.
fn fill(rows: &str) -> String {
    format!(
        "INSERT INTO outbox_message (event_type, aggregate_type, aggregate_id, sequence, payload) \
         SELECT 'Happened', 'Thing', 'thing-' || (n % 1000), 1 + n / 1000, \
         '{{\"text\":\"{}\"}}' FROM {rows}",
        "x".repeat(1000)
    )
}

fn check<DB: TestDatabase>(_fixture: &Fixture<DB>, grown: usize) {
    println!("{ROWS} rows: memory has grown by {grown} KiB");
    assert!(grown < MOST_KIB, "{grown} KiB");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[cfg_attr(not(target_os = "linux"), ignore = "needs /proc")]
async fn a_backlog_is_drained_in_bounded_memory_on_sqlite() {
    let fixture = outbox_tests::sqlite().await;
    let rows = format!(
        "(WITH RECURSIVE numbers (n) AS \
         (SELECT 0 UNION ALL SELECT n + 1 FROM numbers WHERE n + 1 < {ROWS}) SELECT n FROM numbers)"
    );
    fixture.run_sql(&fill(&rows)).await;
    let grown = start(&fixture.url).await;
    check(&fixture, grown);
}

/// A transaction with a lower id stays open all the time, so that no position can move.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[cfg_attr(not(target_os = "linux"), ignore = "needs /proc")]
async fn a_backlog_behind_an_open_transaction_is_drained_in_bounded_memory_on_postgres() {
    let Some(fixture) = outbox_tests::postgres().await else {
        return;
    };
    let mut open = fixture.pool.begin().await.unwrap();
    sqlx::query(sqlx::AssertSqlSafe(fill("(SELECT -1 AS n) AS one")))
        .execute(&mut *open)
        .await
        .unwrap();
    let rows = format!("generate_series(0, {}) AS n", ROWS - 1);
    fixture.run_sql(&fill(&rows)).await;
    let grown = start(&fixture.url).await;
    let moved = fixture.number("SELECT max(position) FROM outbox_shard");
    assert_eq!(moved.await, 0, "a position passed the open transaction");
    open.rollback().await.unwrap();
    check(&fixture, grown);
}
