//! Handlers behind real brokers.

use std::time::Duration;

use sqlx::Postgres;

use super::server::BrokerServer;
use crate::faults::{BrokerAddress, Stage};

/// Members of the group leave in good order, die and oversleep in turn, with messages in work, and
/// come back when the others have taken over.
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
        match turn % 3 {
            1 if server.misses_silent_members() => {
                stage.workers[number].kill();
                go_on_alone(stage).await;
                stage.succeed(number);
            }
            2 if server.misses_silent_members() => {
                stage.workers[number].pause();
                go_on_alone(stage).await;
                stage.workers[number].wake();
            }
            _ => {
                if !stage.workers[number].finish().await {
                    let problem = "a consumer did not end in good order";
                    stage.problems.push(problem.to_owned());
                }
                go_on(stage).await;
                stage.succeed(number);
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

/// Waits for longer than leases and heartbeats last, and until the others have gone on.
async fn go_on_alone(stage: &mut Stage<'_, Postgres>) {
    stage.pause(2600, 3200).await;
    go_on(stage).await;
}

/// Waits until some more messages have their effect.
async fn go_on(stage: &mut Stage<'_, Postgres>) {
    let effects = stage.look().await.unwrap_or_default().effects;
    stage.wait_for_effects(effects + 25).await;
}
