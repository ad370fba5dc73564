use std::env;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use outbox_runtime::Outbox;
use outbox_tests::Fixture;
use sqlx::postgres::PgPoolOptions;
use sqlx::sqlite::SqlitePoolOptions;

use crate::dice::dice;
use crate::shop::{self, LOAD, ShopDb};
use crate::writers::open_accounts;

/// Where the program's database is. Without it, the program is not to run.
const DATABASE: &str = "OUTBOX_PROOF_DATABASE";
/// Whether the program writes.
const WRITES: &str = "OUTBOX_PROOF_WRITES";
const KILLS: usize = 20;
/// So many of the kills have to interrupt a program in which everything is under way, however slow
/// the machine is.
const AT_WORK: usize = 3;
const MOST_KILLS: usize = 100;

outbox_tests::on_both_databases!(a_process_that_is_killed_at_random_loses_and_repeats_nothing);

/// The program of the tests here, which start this binary with this test alone: writers, relay,
/// broker and handlers in one process.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn program() {
    let Ok(url) = env::var(DATABASE) else {
        return;
    };
    if url.starts_with("postgres") {
        let pool = PgPoolOptions::new().max_connections(20).connect(&url);
        run(Outbox::new("test", pool.await.unwrap())).await;
    } else {
        let pool = SqlitePoolOptions::new().max_connections(8).connect(&url);
        run(Outbox::new("test", pool.await.unwrap())).await;
    }
}

async fn run<DB: ShopDb>(outbox: Outbox<DB>) {
    let _app = shop::open(&outbox).await;
    if env::var_os(WRITES).is_some() {
        LOAD.run(&outbox, &mut fastrand::Rng::new()).await;
    }
    std::future::pending().await
}

/// The program in a process of its own, which never outlives the test.
struct Program(Child);

impl Program {
    /// Kills it with SIGKILL.
    fn kill(mut self) {
        let ended = self.0.try_wait().unwrap();
        assert!(ended.is_none(), "it ended by itself: {ended:?}");
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn start(url: &str, writes: bool) -> Program {
    let mut command = Command::new(env::current_exe().unwrap());
    command
        .args(["--exact", "kills::program"])
        .env(DATABASE, url)
        .stdin(Stdio::null())
        .stdout(Stdio::null());
    if writes {
        command.env(WRITES, "yes");
    }
    Program(command.spawn().unwrap())
}

async fn a_process_that_is_killed_at_random_loses_and_repeats_nothing<DB: ShopDb>(
    fixture: Fixture<DB>,
) {
    let mut dice = dice();
    open_accounts(&fixture.outbox, LOAD.accounts).await;
    shop::create_tables(&fixture.outbox).await;
    let (mut kills, mut killed_at_work) = (0, 0);
    while kills < KILLS || (killed_at_work < AT_WORK && kills < MOST_KILLS) {
        kills += 1;
        let before = shop::effects(&fixture).await;
        let program = start(&fixture.url, true);
        tokio::time::sleep(Duration::from_millis(dice.u64(100..1500))).await;
        program.kill();
        let (deposits, mirrored, audited) = shop::effects(&fixture).await;
        let worked = deposits > before.0 && mirrored > before.1 && audited > before.2;
        killed_at_work += usize::from(worked && audited < deposits);
    }
    assert!(killed_at_work >= AT_WORK, "{killed_at_work} of {kills}");
    let program = start(&fixture.url, false);
    shop::all_have_effect(&fixture).await;
    program.kill();
    shop::books_balance(&fixture).await;
    let (deposits, ..) = shop::effects(&fixture).await;
    println!("{deposits} events, {killed_at_work} of {kills} kills in the middle of all work");
}
