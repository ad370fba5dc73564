//! Brokers that are no help.

use std::time::Duration;

use crate::faults::{FaultDb, Mood, Rates, Stage};

/// It is in a bad mood for a while, again and again.
pub(super) async fn moody<DB: FaultDb>(stage: &mut Stage<'_, DB>, mood: Mood) {
    stage.broker.set_patience(Duration::from_millis(1500));
    for _ in 0..2 {
        let mut plan = stage.plan();
        plan.publish_timeout = Duration::from_millis(300);
        stage.start(plan);
    }
    while !stage.is_over().await {
        stage.pause(200, 800).await;
        let before = stage.broker.refusals();
        stage.broker.set_mood(mood);
        stage.pause(300, 900).await;
        stage.broker.set_mood(Mood::Kind);
        stage.strikes += u64::from(stage.broker.refusals() > before);
    }
    stage.drain().await;
}

/// It goes down and comes up again with what it had taken.
pub(super) async fn restarted<DB: FaultDb>(stage: &mut Stage<'_, DB>) {
    for _ in 0..2 {
        stage.start(stage.plan());
    }
    while !stage.is_over().await {
        stage.pause(200, 800).await;
        stage.broker.go_down();
        stage.pause(200, 900).await;
        stage.broker.come_up().await;
        stage.strikes += 1;
    }
    stage.drain().await;
}

/// It is down when everything starts, and comes when half is written.
pub(super) async fn down_at_the_start<DB: FaultDb>(stage: &mut Stage<'_, DB>) {
    stage.broker.go_down();
    // What waits is the point here.
    stage
        .command("UPDATE control SET most_behind = 1000000")
        .await;
    for _ in 0..2 {
        stage.start(stage.plan());
    }
    stage
        .wait_for_messages(i64::from(stage.settings.messages / 2))
        .await;
    if stage
        .look()
        .await
        .is_none_or(|standing| standing.effects > 0)
    {
        stage.problems.push("an effect without a broker".to_owned());
    }
    stage.broker.come_up().await;
    stage.strikes = 1;
    stage.enough_strikes = 1;
    while !stage.is_over().await {
        stage.pause(50, 100).await;
    }
    stage.drain().await;
}

/// It takes messages and its answers are lost; it loses acknowledgements; it refuses at times.
pub(super) async fn forgetful<DB: FaultDb>(stage: &mut Stage<'_, DB>) {
    stage.broker.set_patience(Duration::from_millis(700));
    stage.broker.set_rates(Rates {
        refused: 30,
        unanswered: 80,
        unacknowledged: 20,
    });
    for _ in 0..2 {
        stage.start(stage.plan());
    }
    while !stage.is_over().await {
        stage.pause(50, 100).await;
        stage.strikes = stage.broker.refusals();
    }
    stage.broker.set_rates(Rates::default());
    stage.drain().await;
}

/// A publish lasts longer than the relay's lease.
pub(super) async fn slow<DB: FaultDb>(stage: &mut Stage<'_, DB>) {
    stage.broker.set_delay(Duration::from_millis(900));
    for _ in 0..2 {
        let mut plan = stage.plan();
        plan.lease = Duration::from_millis(400);
        plan.publish_timeout = Duration::from_secs(5);
        stage.start(plan);
    }
    while !stage.is_over().await {
        stage.pause(50, 100).await;
        stage.strikes = stage.broker.slow_publishes();
    }
    stage.drain().await;
}

/// A handler lasts longer than the broker leaves a message with it: another gets it meanwhile.
pub(super) async fn slow_handler<DB: FaultDb>(stage: &mut Stage<'_, DB>) {
    stage.broker.set_patience(Duration::from_millis(250));
    for _ in 0..2 {
        let mut plan = stage.plan();
        plan.lease = Duration::from_millis(400);
        plan.handler_delay = Duration::from_millis(700);
        plan.handlers_are_slow = 40;
        stage.start(plan);
    }
    while !stage.is_over().await {
        stage.pause(50, 100).await;
        stage.strikes = stage.broker.repeats();
    }
    stage.drain().await;
}
