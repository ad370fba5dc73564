use std::time::{Duration, Instant};

use super::arena::{Needs, NotExercised};
use super::broker::{Mood, Rates};
use super::database::FaultDb;
use super::stage::{Settings, Stage, Watcher};
use super::verdict::Verdict;

/// What happened in a soak.
#[derive(Debug, Default)]
struct Events {
    kills: u64,
    cuts: u64,
    outages: u64,
    pauses: u64,
    restarts: u64,
}

/// Lets random faults strike a database under load for so long, and counts.
///
/// Three workers write, relay and handle; one thing goes wrong after the other, with rests in
/// between. Messages of the settings is the least that has to have gone through.
///
/// # Errors
/// [`NotExercised`] if this machine lacks something for it.
pub async fn soak<DB: FaultDb>(
    settings: Settings,
    how_long: Duration,
    watcher: &Watcher<'_>,
) -> Result<Verdict, NotExercised> {
    let arena = DB::arena(Needs::Restarts).await?;
    let mut stage = Stage::set(arena, settings, watcher).await;
    stage.broker.set_patience(Duration::from_millis(1500));
    stage.broker.set_rates(Rates {
        refused: 5,
        unanswered: 10,
        unacknowledged: 5,
    });
    for _ in 0..3 {
        let mut plan = stage.plan();
        plan.handlers_fail = 10;
        stage.start(plan);
    }
    let (begun, mut events) = (Instant::now(), Events::default());
    while begun.elapsed() < how_long {
        stage.pause(300, 1500).await;
        strike(&mut stage, &mut events).await;
        stage.look().await;
    }
    stage.drain().await;
    let seconds = begun.elapsed().as_secs_f64();
    let Events {
        kills,
        cuts,
        outages,
        pauses,
        restarts,
    } = events;
    stage.strikes = kills + cuts + outages + pauses + restarts;
    stage.remark = format!(
        "{kills} kills, {cuts} connections cut, {outages} times without the broker, {pauses} \
         pauses, {restarts} times without the database"
    );
    let least = i64::from(stage.settings.messages);
    let mut verdict = stage.verdict().await;
    let rate = verdict.messages as f64 / seconds;
    verdict.remark = format!("{}; {rate:.0} messages/s", verdict.remark);
    if verdict.messages < least {
        let problem = format!("only {} of {least} messages went through", verdict.messages);
        verdict.problems.push(problem);
    }
    Ok(verdict)
}

async fn strike<DB: FaultDb>(stage: &mut Stage<'_, DB>, events: &mut Events) {
    let number = stage.dice.usize(0..stage.workers.len());
    match stage.dice.u32(0..100) {
        0..40 => {
            stage.kill(number);
            events.kills += 1;
        }
        40..60 => events.cuts += DB::cut(&stage.arena).await.unsigned_abs(),
        60..68 => {
            stage.broker.set_mood(Mood::Refusing);
            stage.pause(300, 2000).await;
            stage.broker.set_mood(Mood::Kind);
            events.outages += 1;
        }
        68..75 => {
            stage.broker.set_mood(Mood::BlackHole);
            stage.pause(300, 2000).await;
            stage.broker.set_mood(Mood::Kind);
            events.outages += 1;
        }
        75..82 => {
            stage.broker.go_down();
            stage.pause(300, 2000).await;
            stage.broker.come_up().await;
            events.outages += 1;
        }
        82..94 => {
            stage.workers[number].pause();
            stage.pause(300, 2500).await;
            stage.workers[number].wake();
            events.pauses += 1;
        }
        _ => {
            DB::strike_down(&mut stage.arena).await;
            events.restarts += 1;
        }
    }
}
