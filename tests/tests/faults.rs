//! The fault matrix, each cell as a test with fewer messages than `cargo xtask faults` has.
//! `tests/README.md` says which test stands for which failure case.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing
)]

#[path = "faults/broken_on_purpose.rs"]
mod broken_on_purpose;
#[cfg(feature = "brokers")]
#[path = "faults/on_brokers.rs"]
mod on_brokers;
#[path = "faults/run.rs"]
mod run;

use std::time::Duration;

use outbox_runtime::fault::Point;
use outbox_tests::faults::{Fault, FaultDb, soak};
use run::{judge, settings, tried};

/// Makes tests of generic functions, one for each database.
macro_rules! on_both {
    ($($name:ident),+ $(,)?) => {
        mod on_sqlite {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $name() {
                super::$name::<sqlx::Sqlite>().await;
            })+
        }

        mod on_postgres {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $name() {
                super::$name::<sqlx::Postgres>().await;
            })+
        }
    };
}
pub(crate) use on_both;

on_both!(
    killed_at_random,
    killed_before_commit,
    killed_after_commit,
    killed_before_publish,
    killed_after_publish,
    killed_before_settle,
    killed_before_park,
    killed_before_handle,
    killed_before_ack,
    steps_fail,
    database_restarted,
    connections_cut,
    listener_cut,
    broker_refuses,
    broker_black_hole,
    broker_restarted,
    broker_down_at_start,
    answers_lost,
    slow_publish,
    slow_handler,
    process_clocks,
    database_clock,
    poison,
    relay_paused,
    shards_move,
    shutdown_under_load,
    recovery_every_millisecond,
    one_aggregate,
    crowd,
    old_snapshot,
    a_short_soak,
);

async fn killed_at_random<DB: FaultDb>() {
    tried::<DB>(Fault::KilledAtRandom, 200).await;
}

async fn killed_before_commit<DB: FaultDb>() {
    tried::<DB>(Fault::KilledAt(Point::BeforeCommit), 100).await;
}

async fn killed_after_commit<DB: FaultDb>() {
    tried::<DB>(Fault::KilledAt(Point::AfterCommit), 100).await;
}

async fn killed_before_publish<DB: FaultDb>() {
    tried::<DB>(Fault::KilledAt(Point::BeforePublish), 200).await;
}

async fn killed_after_publish<DB: FaultDb>() {
    tried::<DB>(Fault::KilledAt(Point::AfterPublish), 200).await;
}

async fn killed_before_settle<DB: FaultDb>() {
    tried::<DB>(Fault::KilledAt(Point::BeforeSettle), 200).await;
}

async fn killed_before_park<DB: FaultDb>() {
    tried::<DB>(Fault::KilledAt(Point::BeforePark), 200).await;
}

async fn killed_before_handle<DB: FaultDb>() {
    tried::<DB>(Fault::KilledAt(Point::BeforeHandle), 100).await;
}

async fn killed_before_ack<DB: FaultDb>() {
    tried::<DB>(Fault::KilledAt(Point::BeforeAck), 100).await;
}

async fn steps_fail<DB: FaultDb>() {
    tried::<DB>(Fault::StepsFail, 300).await;
}

async fn database_restarted<DB: FaultDb>() {
    tried::<DB>(Fault::DatabaseRestarted, 200).await;
}

async fn connections_cut<DB: FaultDb>() {
    tried::<DB>(Fault::ConnectionsCut, 200).await;
}

async fn listener_cut<DB: FaultDb>() {
    tried::<DB>(Fault::ListenerCut, 200).await;
}

async fn broker_refuses<DB: FaultDb>() {
    tried::<DB>(Fault::BrokerRefuses, 200).await;
}

async fn broker_black_hole<DB: FaultDb>() {
    tried::<DB>(Fault::BrokerBlackHole, 200).await;
}

async fn broker_restarted<DB: FaultDb>() {
    tried::<DB>(Fault::BrokerRestarted, 200).await;
}

async fn broker_down_at_start<DB: FaultDb>() {
    tried::<DB>(Fault::BrokerDownAtStart, 300).await;
}

async fn answers_lost<DB: FaultDb>() {
    tried::<DB>(Fault::AnswersLost, 300).await;
}

async fn slow_publish<DB: FaultDb>() {
    tried::<DB>(Fault::SlowPublish, 200).await;
}

async fn slow_handler<DB: FaultDb>() {
    tried::<DB>(Fault::SlowHandler, 200).await;
}

async fn process_clocks<DB: FaultDb>() {
    tried::<DB>(Fault::ProcessClocks, 200).await;
}

async fn database_clock<DB: FaultDb>() {
    tried::<DB>(Fault::DatabaseClock, 200).await;
}

async fn poison<DB: FaultDb>() {
    tried::<DB>(Fault::Poison, 1_000).await;
}

async fn relay_paused<DB: FaultDb>() {
    tried::<DB>(Fault::RelayPaused, 200).await;
}

async fn shards_move<DB: FaultDb>() {
    tried::<DB>(Fault::ShardsMove, 200).await;
}

async fn shutdown_under_load<DB: FaultDb>() {
    tried::<DB>(Fault::ShutdownUnderLoad, 200).await;
}

async fn recovery_every_millisecond<DB: FaultDb>() {
    tried::<DB>(Fault::Recovery, 300).await;
}

/// A thousand events of the writers, and one of the ledger for each.
async fn one_aggregate<DB: FaultDb>() {
    tried::<DB>(Fault::OneAggregate, 2_000).await;
}

async fn crowd<DB: FaultDb>() {
    tried::<DB>(Fault::Crowd, 300).await;
}

async fn old_snapshot<DB: FaultDb>() {
    tried::<DB>(Fault::OldSnapshot, 600).await;
}

async fn a_short_soak<DB: FaultDb>() {
    let soaking = soak::<DB>(settings(300), Duration::from_secs(20), &|_| {});
    judge("soak", soaking.await);
}

/// What the matrix tries is tried here too.
#[test]
fn each_fault_has_its_test() {
    let source = include_str!("faults.rs");
    for fault in Fault::all() {
        let name = fault.name().replace('-', "_");
        assert!(source.contains(&format!("async fn {name}<")), "{name}");
    }
}
