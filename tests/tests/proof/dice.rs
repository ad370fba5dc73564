use std::env;
use std::time::Duration;

use fastrand::Rng;

/// A source of chance for one test; `OUTBOX_TEST_SEED` repeats a run.
pub(crate) fn dice() -> Rng {
    let seed = env::var("OUTBOX_TEST_SEED")
        .ok()
        .and_then(|seed| seed.parse().ok())
        .unwrap_or_else(|| fastrand::u64(..));
    // Shown when the test fails.
    println!("repeat with OUTBOX_TEST_SEED={seed}");
    Rng::with_seed(seed)
}

/// Whether something that happens so many times in a thousand happens now.
pub(crate) fn per_mille(dice: &mut Rng, times: u32) -> bool {
    dice.u32(0..1000) < times
}

/// Waits between nothing and so many microseconds.
pub(crate) async fn pause(dice: &mut Rng, at_most_micros: u64) {
    tokio::time::sleep(Duration::from_micros(dice.u64(0..=at_most_micros))).await;
}
