//! Relays that oversleep, and shards that change hands.

use std::time::Duration;

use crate::faults::{FaultDb, Rates, Stage};

/// Three processes; one is stopped past its lease and woken.
pub(super) async fn paused<DB: FaultDb>(stage: &mut Stage<'_, DB>) {
    stage.broker.set_patience(Duration::from_millis(800));
    stage.enough_strikes = stage.enough_strikes.div_ceil(2);
    for _ in 0..3 {
        stage.start(stage.plan());
    }
    while !stage.is_over().await {
        stage.pause(200, 500).await;
        let number = stage.dice.usize(0..3);
        stage.workers[number].pause();
        // The lease lasts 600 ms.
        stage.pause(900, 1800).await;
        stage.workers[number].wake();
        stage.strikes += 1;
    }
    stage.drain().await;
}

/// Relays come, take their share of the shards and go, while calls to the broker are under way.
pub(super) async fn shards_move<DB: FaultDb>(stage: &mut Stage<'_, DB>) {
    stage.broker.set_delay(Duration::from_millis(80));
    stage.start(stage.plan());
    let guests = [0; 2].map(|_| stage.start(stage.plan().only_relays()));
    while !stage.is_over().await {
        stage.pause(250, 700).await;
        let number = guests[stage.dice.usize(0..2)];
        if stage.dice.bool() {
            stage.kill(number);
            continue;
        }
        if !stage.workers[number].finish().await {
            let problem = "a relay did not end in good order";
            stage.problems.push(problem.to_owned());
        }
        stage.strikes += 1;
        stage.succeed(number);
    }
    stage.drain().await;
}

/// All events are of one aggregate; relays are killed, and the broker refuses and forgets.
pub(super) async fn one_aggregate<DB: FaultDb>(stage: &mut Stage<'_, DB>) {
    stage.broker.set_patience(Duration::from_millis(700));
    stage.broker.set_rates(Rates {
        refused: 100,
        unanswered: 60,
        unacknowledged: 10,
    });
    stage.start(stage.plan().only_writes());
    stage.workers[0].start.plan.writers = 1;
    stage.workers[0].start.plan.accounts = 1;
    stage.succeed(0);
    for _ in 0..3 {
        stage.start(stage.plan().silent());
    }
    while !stage.is_over().await {
        stage.pause(300, 900).await;
        let number = stage.dice.usize(1..4);
        stage.kill(number);
    }
    stage.broker.set_rates(Rates::default());
    stage.drain().await;
}
