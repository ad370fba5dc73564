//! Loads that something gets in the way of.

use std::time::{Duration, Instant};

use crate::faults::{FaultDb, Rates, Stage, account};

/// One aggregate's messages can't be handled: they wait, and nothing else does.
pub(in crate::faults) async fn poison<DB: FaultDb>(stage: &mut Stage<'_, DB>) {
    let sick = account(0);
    let of_others = format!(
        "SELECT (SELECT count(*) FROM outbox_message WHERE event_type IN
            ('account.deposited', 'ledger.entered') AND aggregate_id <> '{sick}')
            - (SELECT count(*) FROM effect WHERE aggregate_id <> '{sick}')"
    );
    let of_the_sick = format!("SELECT count(*) FROM effect WHERE aggregate_id = '{sick}'");
    stage
        .command(&format!("INSERT INTO poison VALUES ('{sick}')"))
        .await;
    // The sick one's messages pile up.
    stage.command("UPDATE control SET most_behind = 2000").await;
    for _ in 0..2 {
        let mut plan = stage.plan();
        plan.minds_poison = true;
        plan.rest = Duration::from_millis(3);
        stage.start(plan);
    }
    stage.enough_strikes = 0;
    while !stage.is_over().await {
        stage.pause(50, 100).await;
    }
    stage.end_writing().await;
    let fixture = &stage.arena.fixture;
    let since = Instant::now();
    while fixture.number(&of_others).await > 0 {
        if since.elapsed() > stage.settings.standstill * 3 {
            stage
                .problems
                .push("others wait behind the sick one".to_owned());
            break;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    if fixture.number(&of_the_sick).await > 0 {
        stage.problems.push("the sick one was handled".to_owned());
    }
    let parked = fixture.number("SELECT count(*) FROM inbox_parked").await;
    stage.strikes = parked.unsigned_abs();
    stage.remark = format!("{parked} waited behind the first of one aggregate, then all came");
    stage.command("DELETE FROM poison").await;
    stage.drain().await;
}

/// Whatever looks for something to recover does so every millisecond, beside what is new.
pub(super) async fn recovery<DB: FaultDb>(stage: &mut Stage<'_, DB>) {
    stage.broker.set_patience(Duration::from_millis(400));
    stage.broker.set_rates(Rates {
        refused: 50,
        unanswered: 50,
        unacknowledged: 50,
    });
    for _ in 0..2 {
        let mut plan = stage.plan();
        plan.poll = Duration::from_millis(1);
        plan.lease = Duration::from_millis(300);
        plan.handlers_fail = 200;
        stage.start(plan);
    }
    while !stage.is_over().await {
        stage.pause(50, 100).await;
        stage.strikes = stage.count_in_logs("fails by chance");
    }
    stage.broker.set_rates(Rates::default());
    stage.drain().await;
}

/// Cleaners, relays and writers, several of each, over a log that is full of old rows.
pub(super) async fn crowd<DB: FaultDb>(stage: &mut Stage<'_, DB>) {
    let old = i64::from(stage.settings.messages) * 100;
    DB::fill(&stage.arena.fixture, old).await;
    for _ in 0..3 {
        let mut plan = stage.plan();
        plan.cleans = true;
        stage.start(plan);
    }
    stage.enough_strikes = 1;
    let archived = "SELECT count(*) FROM outbox_message_archive";
    let archived_old = "SELECT count(*) FROM outbox_message_archive WHERE event_type = 'bell.rang'";
    while !stage.is_over().await {
        stage.pause(50, 100).await;
        let gone = DB::try_number(&stage.arena.fixture.pool, archived).await;
        stage.strikes = u64::from(gone.is_ok_and(|gone| gone > old / 2));
    }
    stage.drain_but_keep().await;
    let fixture = &stage.arena.fixture;
    let since = Instant::now();
    while fixture.number(archived_old).await < old
        && since.elapsed() < stage.settings.standstill * 3
    {
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    let archived_old = fixture.number(archived_old).await;
    if archived_old != old {
        let problem = format!("{archived_old} of {old} old rows were archived");
        stage.problems.push(problem);
    }
    let too_early = "SELECT count(*) FROM outbox_message_archive
        WHERE id > (SELECT min(position) FROM outbox_shard)";
    let too_early = fixture.number(too_early).await;
    if too_early > 0 {
        stage
            .problems
            .push(format!("{too_early} rows went unfinished"));
    }
    stage.dismiss().await;
    let failed = stage.count_in_logs("a cleaner failed");
    if failed > 0 {
        stage
            .problems
            .push(format!("cleaners failed {failed} times"));
    }
    stage.remark = format!("{old} old rows beside");
}

/// Another session holds an old snapshot. That the rate does not sink is told and not judged.
pub(super) async fn snapshot<DB: FaultDb>(stage: &mut Stage<'_, DB>) {
    for _ in 0..2 {
        let mut plan = stage.plan();
        plan.rest = Duration::ZERO;
        stage.start(plan);
    }
    let half = i64::from(stage.settings.messages) / 2;
    // Until all are at work.
    stage.wait_for_effects(half / 2).await;
    let without = rate(stage, half + half / 2).await;
    let pool = stage.arena.fixture.pool.clone();
    let mut holder = pool.acquire().await.expect("a connection");
    DB::hold_snapshot(&mut holder).await.expect("a snapshot");
    let with = rate(stage, half * 5 / 2).await;
    stage.strikes = 1;
    stage.remark = format!(
        "{without:.0} messages/s without the snapshot, {with:.0} with it: ratio {:.2}",
        with / without
    );
    stage.drain().await;
    drop(holder.close().await);
}

/// Effects a second until there are so many.
async fn rate<DB: FaultDb>(stage: &mut Stage<'_, DB>, effects: i64) -> f64 {
    let before = stage.look().await.unwrap_or_default().effects;
    let since = Instant::now();
    stage.wait_for_effects(effects).await;
    let after = stage.look().await.unwrap_or_default().effects;
    (after - before) as f64 / since.elapsed().as_secs_f64()
}
