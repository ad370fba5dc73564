//! Real brokers that die, stand still, or come late.

use std::time::{Duration, Instant};

use sqlx::Postgres;

use super::server::BrokerServer;
use crate::faults::Stage;

/// It dies while both workers publish and handle, and comes again with what it had confirmed.
pub(super) async fn killed(stage: &mut Stage<'_, Postgres>, server: &mut BrokerServer) {
    stage.enough_strikes = 2;
    for _ in 0..2 {
        stage.start(stage.plan());
    }
    while !stage.is_over().await {
        let effects = stage.look().await.unwrap_or_default().effects;
        // Everything is under way again when it is struck.
        stage.wait_for_effects(effects + 50).await;
        server.go_down();
        // Longer than a confirmation may take: what is under way fails.
        stage.pause(1100, 1500).await;
        server.come_up();
        stage.strikes += 1;
    }
    stage.drain().await;
}

/// It is stopped for longer than a publish may take: connections stay, nothing is answered, and what
/// was on its way may be taken afterwards.
pub(super) async fn frozen(stage: &mut Stage<'_, Postgres>, server: &mut BrokerServer) {
    stage.enough_strikes = 2;
    for _ in 0..2 {
        let mut plan = stage.plan();
        plan.publish_timeout = Duration::from_millis(700);
        stage.start(plan);
    }
    while !stage.is_over().await {
        let effects = stage.look().await.unwrap_or_default().effects;
        stage.wait_for_effects(effects + 50).await;
        server.freeze();
        stage.pause(1000, 1600).await;
        server.thaw();
        stage.strikes += 1;
    }
    stage.drain().await;
}

/// It is down when everything starts, and comes when half is written.
pub(super) async fn down_at_the_start(stage: &mut Stage<'_, Postgres>, server: &mut BrokerServer) {
    server.go_down();
    // What waits is the point here, and the writers are not to write on while the broker starts.
    let most = stage.settings.messages;
    stage
        .command(&format!("UPDATE control SET most_behind = {most}"))
        .await;
    for _ in 0..2 {
        stage.start(stage.plan());
    }
    let half = i64::from(stage.settings.messages / 2);
    stage.wait_for_messages(half).await;
    wait_for_health(stage, "the app is degraded", 2).await;
    let standing = stage.look().await;
    if standing.is_none_or(|standing| standing.effects > 0) {
        stage.problems.push("an effect without a broker".to_owned());
    }
    server.come_up();
    stage.strikes = 1;
    stage.enough_strikes = 1;
    while !stage.is_over().await {
        stage.pause(50, 100).await;
    }
    stage.drain_but_keep().await;
    wait_for_health(stage, "the app is ready", 2).await;
    // `dismiss` finds both workers alive: none was started again.
    stage.dismiss().await;
}

/// Waits until so many workers say so.
pub(super) async fn wait_for_health(stage: &mut Stage<'_, Postgres>, text: &str, workers: u64) {
    let since = Instant::now();
    while stage.count_in_logs(text) < workers {
        if since.elapsed() > stage.settings.standstill {
            let problem = format!("not every worker told that {text}");
            stage.problems.push(problem);
            return;
        }
        stage.pause(50, 50).await;
    }
}
