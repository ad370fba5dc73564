//! Databases that go away, and clocks that jump.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::faults::{FaultDb, Stage, Start};

const TEN_MINUTES: i64 = 600;
/// A clock that is off by more was moved.
const OFF: i64 = TEN_MINUTES / 2;

/// All of it is away for a while.
pub(super) async fn restarted<DB: FaultDb>(stage: &mut Stage<'_, DB>) {
    stage.enough_strikes = stage.enough_strikes.div_ceil(2);
    for _ in 0..2 {
        stage.start(stage.plan());
    }
    while !stage.is_over().await {
        stage.pause(400, 1200).await;
        DB::strike_down(&mut stage.arena).await;
        stage.strikes += 1;
    }
    stage.drain().await;
}

/// Connections break, or look as if they had.
pub(super) async fn cut<DB: FaultDb>(stage: &mut Stage<'_, DB>) {
    if DB::LOSES_ANSWERS_BY_FAULT_POINTS {
        let faults = "before-commit:fail:every-13,after-commit:fail:every-11,\
                      before-handle:fail:every-17,before-settle:fail:every-3";
        return steps_fail(stage, faults).await;
    }
    for _ in 0..2 {
        stage.start(stage.plan());
    }
    while !stage.is_over().await {
        stage.pause(100, 500).await;
        stage.strikes += u64::from(DB::cut(&stage.arena).await > 0);
    }
    stage.drain().await;
}

/// The named steps fail again and again.
pub(super) async fn steps_fail<DB: FaultDb>(stage: &mut Stage<'_, DB>, faults: &str) {
    for _ in 0..2 {
        stage.start(Start {
            faults: faults.to_owned(),
            ..stage.plan().into()
        });
    }
    while !stage.is_over().await {
        stage.pause(50, 100).await;
        stage.strikes = stage.count_in_logs("a test lets");
    }
    stage.drain().await;
}

/// The relay is in another process than the writers, and its listening connection breaks.
pub(super) async fn listener_cut<DB: FaultDb>(stage: &mut Stage<'_, DB>) {
    stage.start(stage.plan().only_writes());
    stage.start(stage.plan().silent());
    while !stage.is_over().await {
        stage.pause(50, 300).await;
        match DB::LISTENS {
            true => stage.strikes += u64::from(DB::cut_listeners(&stage.arena).await > 0),
            // Nobody tells the relay anything at all.
            false => stage.strikes += 1,
        }
    }
    stage.drain().await;
}

/// The wall clocks of two processes are ten minutes off, one either way.
pub(super) async fn clocks_of_processes<DB: FaultDb>(stage: &mut Stage<'_, DB>) {
    for shift in [TEN_MINUTES, -TEN_MINUTES] {
        let mut plan = stage.plan();
        plan.clock_shift = shift;
        stage.start(plan);
    }
    stage.enough_strikes = 0;
    while !stage.is_over().await {
        stage.pause(50, 100).await;
    }
    stage.drain().await;
    // A message id begins with the milliseconds since 1970, in 12 hexadecimal digits.
    let ids = format!("SELECT {} FROM outbox_message", DB::MESSAGE_ID);
    let now = seconds_now();
    let times: Vec<_> = stage
        .arena
        .fixture
        .texts(&ids)
        .await
        .iter()
        .filter_map(|id| i64::from_str_radix(id.get(..12)?, 16).ok())
        .map(|millis| millis / 1000 - now)
        .collect();
    let ahead = times.iter().filter(|&&off| off > OFF).count();
    let behind = times.iter().filter(|&&off| off < -OFF).count();
    stage.strikes = ahead.min(behind) as u64;
    stage.remark = format!("{ahead} ids from ahead, {behind} from behind");
}

/// The database's clock jumps ten minutes on, back, and ten minutes back.
pub(super) async fn clock_of_database<DB: FaultDb>(stage: &mut Stage<'_, DB>) {
    let environment = DB::clock_of_workers(&stage.arena);
    for _ in 0..2 {
        stage.start(Start {
            environment: environment.clone(),
            ..stage.plan().into()
        });
    }
    stage.enough_strikes = 4;
    while !stage.is_over().await {
        for shift in [TEN_MINUTES, 0, -TEN_MINUTES, 0] {
            stage.pause(700, 1200).await;
            let clock = stage.arena.clock.as_ref().expect("a clock to set");
            clock.shift(shift);
            if is_shifted_by(stage, shift).await {
                stage.strikes += 1;
            }
        }
    }
    stage.drain().await;
}

/// Waits until the newest event has a time that is off by so many seconds.
async fn is_shifted_by<DB: FaultDb>(stage: &mut Stage<'_, DB>, shift: i64) -> bool {
    for _ in 0..200 {
        let newest = DB::try_number(&stage.arena.fixture.pool, DB::NEWEST_AT).await;
        if newest.is_ok_and(|newest| (newest - seconds_now() - shift).abs() < OFF) {
            return true;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    stage
        .problems
        .push(format!("no event has a time {shift} s off"));
    false
}

fn seconds_now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    i64::try_from(since.unwrap_or_default().as_secs()).unwrap_or(i64::MAX)
}
