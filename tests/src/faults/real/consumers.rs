//! Handlers behind real brokers.

use std::time::Duration;

use sqlx::Postgres;

use super::server::BrokerServer;
use crate::faults::{BrokerAddress, Stage};

/// Members of the group die, leave in good order and oversleep in turn, with messages in work.
pub(super) async fn moved(stage: &mut Stage<'_, Postgres>, server: &BrokerServer) {
    stage.enough_strikes = 3;
    let mut consumer = stage.plan().only_consumes();
    if let BrokerAddress::Real { member, .. } = &mut consumer.broker {
        // Who is known by name keeps its part until it comes back.
        *member = None;
    }
    consumer.handler_delay = Duration::from_millis(150);
    consumer.handlers_are_slow = 60;
    let members = [0; 3].map(|_| stage.start(consumer.clone()));
    let mut other = stage.plan();
    other.consumes = false;
    stage.start(other);
    let mut turn = 0;
    while !stage.is_over().await {
        go_on(stage).await;
        let number = members[stage.dice.usize(0..3)];
        let (from, to) = server.silence();
        match turn % 3 {
            0 => {
                stage.workers[number].kill();
                // The others take over before it is back. The Kafka server of the tests would wait
                // for ever for a dead leader if somebody joined before.
                stage.pause(from, to).await;
                go_on(stage).await;
                stage.succeed(number);
            }
            1 => {
                if !stage.workers[number].finish().await {
                    let problem = "a consumer did not end in good order";
                    stage.problems.push(problem.to_owned());
                }
                go_on(stage).await;
                stage.succeed(number);
            }
            _ => {
                stage.workers[number].pause();
                stage.pause(from, to).await;
                go_on(stage).await;
                stage.workers[number].wake();
            }
        }
        stage.strikes += 1;
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

/// Waits until some more messages have their effect.
async fn go_on(stage: &mut Stage<'_, Postgres>) {
    let effects = stage.look().await.unwrap_or_default().effects;
    stage.wait_for_effects(effects + 25).await;
}
