//! Handlers behind real brokers.

use std::time::Duration;

use sqlx::Postgres;

use crate::faults::Stage;

/// What makes every broker give a silent member's part to another: the longest of the leases,
/// Kafka's sessions and RabbitMQ's heartbeats, see `BrokerServer::url`.
const TOO_LONG: (u64, u64) = (2600, 3200);

/// Members of the group die, leave in good order and oversleep in turn, with messages in work.
pub(super) async fn moved(stage: &mut Stage<'_, Postgres>) {
    stage.enough_strikes = 6;
    let mut consumer = stage.plan().only_consumes();
    consumer.handler_delay = Duration::from_millis(150);
    consumer.handlers_are_slow = 60;
    let members = [0; 3].map(|_| stage.start(consumer.clone()));
    let mut other = stage.plan();
    other.consumes = false;
    stage.start(other);
    let mut turn = 0;
    while !stage.is_over().await {
        let effects = stage.look().await.unwrap_or_default().effects;
        stage.wait_for_effects(effects + 25).await;
        let number = members[stage.dice.usize(0..3)];
        match turn % 3 {
            0 => stage.kill(number),
            1 => {
                if !stage.workers[number].finish().await {
                    let problem = "a consumer did not end in good order";
                    stage.problems.push(problem.to_owned());
                }
                stage.strikes += 1;
                stage.succeed(number);
            }
            _ => {
                stage.workers[number].pause();
                stage.pause(TOO_LONG.0, TOO_LONG.1).await;
                stage.workers[number].wake();
                stage.strikes += 1;
            }
        }
        turn += 1;
    }
    stage.drain().await;
}

/// Handlers panic, before and after their effect is written.
pub(super) async fn panicking(stage: &mut Stage<'_, Postgres>) {
    for _ in 0..2 {
        let mut plan = stage.plan();
        plan.handlers_panic = 80;
        stage.start(plan);
    }
    while !stage.is_over().await {
        stage.pause(50, 100).await;
        stage.strikes = stage.count_in_logs("the handler panics by chance");
    }
    // `drain` finds both workers alive.
    stage.drain().await;
}
