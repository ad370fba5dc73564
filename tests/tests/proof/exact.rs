use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use outbox_runtime::Outbox;
use outbox_tests::Fixture;
use sqlx::pool::PoolOptions;
use tokio_util::sync::CancellationToken;

use crate::books::{
    all_arrive, books_balance, positions_are_behind_arrivals, what_arrived_is_what_was_committed,
};
use crate::dice::dice;
use crate::recorder::{Faults, Recorder};
use crate::relays::{Chaos, RunningRelay};
use crate::writers::{Load, ProofDb, open_accounts};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fifty_thousand_events_of_32_writers_on_postgres() {
    let Some(fixture) = outbox_tests::postgres().await else {
        return;
    };
    let load = Load {
        events: 50_000,
        writers: 32,
        accounts: 800,
        wait: 20_000,
        open_for: Duration::from_secs(3),
        rest: Duration::from_secs(1),
        may_fail: false,
    };
    none_is_lost_or_out_of_order(fixture, load).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fifty_thousand_events_of_one_writer_at_a_time_on_sqlite() {
    let load = Load {
        events: 50_000,
        writers: 8,
        accounts: 800,
        wait: 500,
        open_for: Duration::from_secs(2),
        rest: Duration::from_secs(8),
        may_fail: false,
    };
    none_is_lost_or_out_of_order(outbox_tests::sqlite().await, load).await;
}

async fn none_is_lost_or_out_of_order<DB: ProofDb>(fixture: Fixture<DB>, load: Load) {
    let mut dice = dice();
    let began = Instant::now();
    open_accounts(&fixture.outbox, load.accounts).await;
    let opened = fixture.events().await;
    let faults = Faults {
        refused: 3,
        lost_answers: 20,
    };
    let recorder = Recorder::new(dice.fork(), faults);
    // One relay lives with the writers, the others as in processes of their own.
    let outboxes = vec![
        fixture.outbox.clone(),
        neighbour(&fixture).await,
        neighbour(&fixture).await,
    ];
    let chaos = Chaos::start(outboxes, 50..1500, recorder.clone(), &mut dice);
    let watch_ends = CancellationToken::new();
    let watching = tokio::spawn(positions_are_behind_arrivals(
        fixture.outbox.clone(),
        recorder.clone(),
        watch_ends.clone(),
    ));
    let tally = load.run(&fixture.outbox, &mut dice).await;
    let written = began.elapsed();
    let stops = chaos.end().await;
    let relay = RunningRelay::start(&fixture.outbox, recorder.clone());
    all_arrive(&fixture, &recorder).await;
    relay.stop().await;
    watch_ends.cancel();
    let looks = watching.await.unwrap();

    let committed = i64::try_from(tally.events.load(Ordering::SeqCst)).unwrap();
    assert_eq!(fixture.events().await, committed + opened);
    books_balance(&fixture).await;
    let overtook_slow = what_arrived_is_what_was_committed(&fixture, &recorder).await;
    assert_eq!(recorder.overlaps(), 0, "an aggregate was in two calls");
    assert!(tally.rolled_back.load(Ordering::SeqCst) > 100);
    assert!(tally.long.load(Ordering::SeqCst) > 0);
    assert!(recorder.repetitions() > 0, "no crash hit a publish");
    if DB::WRITERS_OVERLAP {
        assert!(overtook_slow > 100, "an open transaction held back others");
    }
    println!("{tally:?}, {looks} looks at positions");
    println!(
        "{} arrived, {} repetitions, {overtook_slow} overtook an open transaction, {stops} relays \
         stopped; written after {written:?}, all after {:?}",
        recorder.distinct(),
        recorder.repetitions(),
        began.elapsed()
    );
}

/// An outbox on connections of its own, as another process has it.
async fn neighbour<DB: ProofDb>(fixture: &Fixture<DB>) -> Outbox<DB> {
    let options = (*fixture.pool.connect_options()).clone();
    let pool = PoolOptions::new()
        .max_connections(4)
        .connect_with(options)
        .await
        .unwrap();
    Outbox::new("test", pool)
}
