use std::env;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use outbox_runtime::dead_letters::LetterFilter;
use outbox_runtime::prelude::*;
use outbox_tests::{Fixture, TestDatabase, on_both_databases};
use sqlx::postgres::PgPoolOptions;
use sqlx::sqlite::SqlitePoolOptions;

use crate::operators::{assert_nothing_is_half_done, fill_lanes};
use crate::stock::{count, note};

/// Where the program's database is. Without it, the program is not to run.
const DATABASE: &str = "OUTBOX_DEAD_LETTERS_DATABASE";
const LANES: i64 = 400;
const LETTERS: i64 = LANES * 10;

on_both_databases!(an_operators_program_that_is_killed_leaves_nothing_half_done);

/// The program of the test here, which starts this binary with this test alone.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn program() {
    let Ok(url) = env::var(DATABASE) else {
        return;
    };
    if url.starts_with("postgres") {
        let pool = PgPoolOptions::new().connect(&url).await.unwrap();
        discard(Outbox::new("cli", pool)).await;
    } else {
        let pool = SqlitePoolOptions::new().connect(&url).await.unwrap();
        discard(Outbox::new("cli", pool)).await;
    }
}

async fn discard<DB: Backend>(outbox: Outbox<DB>) {
    let all = LetterFilter::new().parked();
    let run = outbox.dead_letters().discard(all, note()).chunk_size(10);
    run.finish().await.unwrap();
}

/// The program in a process of its own, which never outlives the test.
struct Program(Child);

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn start(url: &str) -> Program {
    let child = Command::new(env::current_exe().unwrap())
        .args(["--exact", "kills::program"])
        .env(DATABASE, url)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .spawn();
    Program(child.unwrap())
}

async fn an_operators_program_that_is_killed_leaves_nothing_half_done<DB: TestDatabase>(
    fixture: Fixture<DB>,
) {
    fill_lanes(&fixture, LANES).await;
    let mut killed_midway = 0;
    let mut dice = fastrand::Rng::new();
    for _ in 0..5 {
        let before = count(&fixture, "outbox_discarded").await;
        let program = start(&fixture.url);
        let begun = async {
            while count(&fixture, "outbox_discarded").await == before {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(60), begun)
            .await
            .expect("the program begins");
        tokio::time::sleep(Duration::from_micros(dice.u64(0..10_000))).await;
        drop(program);
        assert_nothing_is_half_done(&fixture, LETTERS).await;
        let after = count(&fixture, "outbox_discarded").await;
        killed_midway += usize::from(after < LETTERS);
        if after == LETTERS {
            break;
        }
    }
    assert!(killed_midway > 0, "every program was faster than its end");
    discard(fixture.outbox.clone()).await;
    assert_eq!(count(&fixture, "outbox_discarded").await, LETTERS);
    assert_nothing_is_half_done(&fixture, LETTERS).await;
    println!("killed {killed_midway} times midway");
}
