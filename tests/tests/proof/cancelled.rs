use std::time::Duration;

use fastrand::Rng;
use outbox_runtime::Error;
use outbox_runtime::prelude::*;
use outbox_tests::Fixture;
use sqlx::Pool;
use sqlx::pool::PoolOptions;
use tokio::task::JoinSet;

use crate::books::{all_arrive, books_balance, what_arrived_is_what_was_committed};
use crate::dice::dice;
use crate::recorder::{Faults, Recorder};
use crate::relays::RunningRelay;
use crate::writers::{ProofDb, SLOW, change, deposit, name, open_accounts};

const ACCOUNTS: usize = 30;
const TASKS: usize = 24;
const UNITS: usize = 80;
const CONNECTIONS: u32 = 6;

outbox_tests::on_both_databases!(units_that_are_given_up_under_load_leave_nothing);

/// Units of work are cancelled, aborted, dropped and unwound at any point, beside others that
/// commit, on a pool that is too small for them all.
async fn units_that_are_given_up_under_load_leave_nothing<DB: ProofDb>(fixture: Fixture<DB>) {
    let mut dice = dice();
    open_accounts(&fixture.outbox, ACCOUNTS).await;
    let pool: Pool<DB> = PoolOptions::new()
        .max_connections(CONNECTIONS)
        .acquire_timeout(Duration::from_secs(60))
        .connect_with((*fixture.pool.connect_options()).clone())
        .await
        .unwrap();
    let outbox = Outbox::new("test", pool.clone());
    let recorder = Recorder::new(dice.fork(), Faults::default());
    let relay = RunningRelay::start(&fixture.outbox, recorder.clone());
    let mut tasks = JoinSet::new();
    for _ in 0..TASKS {
        tasks.spawn(give_up_units(outbox.clone(), dice.fork()));
    }
    let mut given_up = 0;
    while let Some(count) = tasks.join_next().await {
        given_up += count.unwrap();
    }
    assert!(given_up > TASKS * UNITS / 4, "{given_up}");
    nothing_is_left_open(&fixture, &pool, &outbox).await;
    books_balance(&fixture).await;
    all_arrive(&fixture, &recorder).await;
    relay.stop().await;
    what_arrived_is_what_was_committed(&fixture, &recorder).await;
    println!(
        "{} events, {given_up} units were given up",
        recorder.distinct()
    );
}

/// Says how many units were given up.
async fn give_up_units<DB: ProofDb>(outbox: Outbox<DB>, mut dice: Rng) -> usize {
    let mut given_up = 0;
    for _ in 0..UNITS {
        let way = dice.u32(0..4);
        // In a task of its own it may unwind.
        let work = unit(outbox.clone(), dice.fork(), way > 0);
        let soon = Duration::from_micros(dice.u64(0..20_000));
        let done = match way {
            0 => tokio::time::timeout(soon, work).await.ok(),
            1 => {
                let task = tokio::spawn(work);
                tokio::time::sleep(soon).await;
                task.abort();
                task.await.ok()
            }
            _ => tokio::spawn(work).await.ok(),
        };
        match done {
            Some(Ok(true)) => {}
            Some(Err(error)) if error.is_version_conflict() => {}
            Some(Err(error)) => panic!("{error}: {error:?}"),
            Some(Ok(false)) | None => given_up += 1,
        }
    }
    given_up
}

/// A unit of work that may stop at any step; says whether it committed.
async fn unit<DB: ProofDb>(
    outbox: Outbox<DB>,
    mut dice: Rng,
    may_unwind: bool,
) -> Result<bool, Error> {
    let stops_at = dice.u32(0..12);
    let unwinds = may_unwind && dice.bool();
    let mut step = 0;
    let mut stop = || {
        step += 1;
        if step == stops_at && unwinds {
            // Unlike a panic, it is silent.
            std::panic::resume_unwind(Box::new("on purpose"));
        }
        step == stops_at
    };
    let mut uow = outbox.begin(MessageContext::new()).await?;
    change(&mut uow, &mut dice, ACCOUNTS).await?;
    if stop() {
        return Ok(false);
    }
    if dice.bool() {
        uow.connection().await?;
        if stop() {
            return Ok(false);
        }
        let savepoint = uow.savepoint().await?;
        if stop() {
            return Ok(false);
        }
        uow.release(savepoint).await?;
        if stop() {
            return Ok(false);
        }
    }
    uow.commit().await?;
    Ok(true)
}

async fn nothing_is_left_open<DB: ProofDb>(
    fixture: &Fixture<DB>,
    pool: &Pool<DB>,
    outbox: &Outbox<DB>,
) {
    let closing = async {
        while fixture.number(DB::LEFT_OPEN).await > 0 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    let in_time = tokio::time::timeout(Duration::from_secs(30), closing).await;
    assert!(in_time.is_ok(), "a session left its transaction open");
    // All connections can be had at once, and none is in the middle of something.
    let mut connections = Vec::new();
    for _ in 0..CONNECTIONS {
        connections.push(pool.begin().await.unwrap());
    }
    for connection in connections {
        connection.rollback().await.unwrap();
    }
    // No row is locked, and a writer gets its turn.
    let mut uow = outbox.begin(MessageContext::new()).await.unwrap();
    for account in 0..ACCOUNTS {
        deposit(&mut uow, &name(account), 1).await.unwrap();
    }
    deposit(&mut uow, SLOW, 1).await.unwrap();
    let committing = tokio::time::timeout(Duration::from_secs(30), uow.commit());
    committing.await.expect("something is locked").unwrap();
}
