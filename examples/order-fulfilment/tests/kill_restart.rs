//! The program is killed with -9 at 50 random moments, started again each time, and balances.
#![allow(clippy::unwrap_used)]

mod support;

use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use support::{PostgresDatabase, SqliteFile, balanced, program};

const KILLS: u32 = 50;

#[test]
fn fifty_kills_on_sqlite() {
    let mut dice = dice();
    let mut kills = 0;
    while kills < KILLS {
        let file = SqliteFile::new();
        kills += kill_until_finished(&file.url(), KILLS - kills, &mut dice);
        balanced(&mut program(&file.url()));
    }
}

#[tokio::test]
async fn fifty_kills_on_postgres() {
    let mut dice = dice();
    let mut kills = 0;
    while kills < KILLS {
        let Some(database) = PostgresDatabase::new().await else {
            return;
        };
        kills += kill_until_finished(&database.url(), KILLS - kills, &mut dice);
        balanced(&mut program(&database.url()));
        database.drop().await;
    }
}

/// Kills run after run on one database; stops early when a run reached its end before its kill,
/// since further kills would meet a program with nothing left to do.
fn kill_until_finished(url: &str, most: u32, dice: &mut fastrand::Rng) -> u32 {
    for kills in 0..most {
        let moment = Duration::from_millis(dice.u64(10..2000));
        let mut child = program(url)
            .args(["--relay-restarts", "2"])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        if ends_within(&mut child, moment) {
            eprintln!("after {kills} kills a run came to its end");
            return kills;
        }
        child.kill().unwrap();
        child.wait().unwrap();
    }
    most
}

fn ends_within(child: &mut Child, moment: Duration) -> bool {
    let start = Instant::now();
    while start.elapsed() < moment {
        if let Some(status) = child.try_wait().unwrap() {
            assert_eq!(
                status.code(),
                Some(0),
                "a run that was not killed must balance"
            );
            return true;
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    false
}

/// The moments are the seed's; a failure can be tried again with the seed that was printed.
fn dice() -> fastrand::Rng {
    let seed = match std::env::var("OUTBOX_TEST_SEED") {
        Ok(seed) => seed.parse().unwrap(),
        Err(_) => fastrand::u64(..),
    };
    eprintln!("seed: OUTBOX_TEST_SEED={seed}");
    fastrand::Rng::with_seed(seed)
}
