//! Processes that die.

use std::time::Duration;

use outbox_runtime::fault::Point;

use crate::faults::{FaultDb, Plan, Stage, Start};

/// SIGKILL at random moments.
pub(in crate::faults) async fn at_random<DB: FaultDb>(stage: &mut Stage<'_, DB>) {
    for _ in 0..2 {
        stage.start(stage.plan());
    }
    while !stage.is_over().await {
        stage.pause(150, 700).await;
        let number = stage.dice.usize(0..2);
        stage.kill(number);
    }
    stage.drain().await;
}

/// Death at one point, at some arrival there, again and again.
pub(in crate::faults) async fn at_point<DB: FaultDb>(stage: &mut Stage<'_, DB>, point: Point) {
    let mut plan = stage.plan();
    if point == Point::BeforePark {
        // Only what fails is parked.
        plan.handlers_fail = 200;
    }
    // What is passed with each message is passed often.
    let latest = match point {
        Point::BeforeCommit | Point::AfterCommit | Point::BeforeHandle | Point::BeforeAck => {
            u64::from(stage.settings.messages / 10).max(20)
        }
        _ => 20,
    };
    let first = dying(stage.dice.u64(1..=latest), plan, point);
    let number = stage.start(first);
    while !stage.is_over().await {
        if stage.workers[number].ended().is_some() {
            stage.strikes += 1;
            let plan = stage.workers[number].start.plan.clone();
            let next = dying(stage.dice.u64(1..=latest), plan, point);
            stage.workers[number].start = next;
            stage.succeed(number);
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    stage.workers[number].start.faults.clear();
    stage.succeed(number);
    stage.drain().await;
}

fn dying(arrival: u64, plan: Plan, point: Point) -> Start {
    Start {
        faults: format!("{point}:kill:{arrival}"),
        ..plan.into()
    }
}

/// A worker is asked to end in the middle of its work; it has to do so in good order.
pub(super) async fn shut_down<DB: FaultDb>(stage: &mut Stage<'_, DB>) {
    for _ in 0..2 {
        stage.start(stage.plan());
    }
    while !stage.is_over().await {
        stage.pause(200, 700).await;
        let number = stage.dice.usize(0..2);
        if !stage.workers[number].finish().await {
            let problem = "a worker did not end in good order under load";
            stage.problems.push(problem.to_owned());
        }
        stage.strikes += 1;
        stage.succeed(number);
    }
    stage.drain().await;
}
