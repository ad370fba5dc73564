use std::path::PathBuf;

use outbox_tests::faults::{Fault, FaultDb, NotExercised, STANDSTILL, Settings, Verdict};

/// Settings of a run; `OUTBOX_TEST_SEED` throws the same dice again.
pub(crate) fn settings(messages: u32) -> Settings {
    let seed = std::env::var("OUTBOX_TEST_SEED")
        .ok()
        .and_then(|seed| seed.parse().ok())
        .unwrap_or_else(|| fastrand::u64(..));
    // Shown when the test fails.
    println!("repeat with OUTBOX_TEST_SEED={seed}");
    Settings {
        program: PathBuf::from(env!("CARGO_BIN_EXE_faults")),
        messages,
        seed,
        standstill: STANDSTILL,
        sabotage: None,
    }
}

/// Tries a fault; every promise has to be kept.
pub(crate) async fn tried<DB: FaultDb>(fault: Fault, messages: u32) {
    let ended = fault.run::<DB>(settings(messages), &|_| {}).await;
    judge(&fault.name(), ended);
}

/// Every promise has to be kept, and everything to be there for the trial if that is required.
pub(crate) fn judge(name: &str, ended: Result<Verdict, NotExercised>) {
    match ended {
        Ok(verdict) => {
            println!("{name}: {verdict:#?}");
            assert!(verdict.is_clean(), "{name}");
        }
        Err(why) => {
            let required = std::env::var_os("OUTBOX_TEST_REQUIRE_ALL").is_some();
            assert!(!required, "{name}: {why}");
            eprintln!("skipped: {name}: {why}");
        }
    }
}
