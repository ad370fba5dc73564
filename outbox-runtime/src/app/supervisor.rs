use std::any::Any;
use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::pin::pin;
use std::time::Duration;

use futures_util::FutureExt;
use tokio_util::sync::CancellationToken;
use tracing::error;

use crate::backoff::Backoff;
use crate::health::HealthHandle;

/// After so long without an end, a part that was started again counts as recovered.
const STEADY: Duration = Duration::from_secs(10);

/// Keeps a part of the app running until `stop`: one that ends or panics is started again with
/// backoff, and the health says so meanwhile.
///
/// Returns how the part ended after `stop`.
pub(super) async fn supervise<F: Future<Output = Result<(), String>> + Send>(
    part: &'static str,
    health: &HealthHandle,
    stop: &CancellationToken,
    start: impl Fn() -> F,
) -> Result<(), String> {
    let _running = health.running(part, stop.clone());
    let backoff = Backoff::default();
    let mut failures = 0;
    loop {
        let run = AssertUnwindSafe(async { start().await }).catch_unwind();
        let mut run = pin!(run);
        let end = match tokio::time::timeout(STEADY, &mut run).await {
            Ok(end) => end,
            Err(_) => {
                failures = 0;
                health.recover(part);
                run.await
            }
        };
        if stop.is_cancelled() {
            return end.unwrap_or(Ok(()));
        }
        failures += 1;
        let reason = describe(end);
        error!(part, reason, failures, "part ended; starting it again");
        health.degrade(part, format!("the {part} {reason}; it is started again"));
        let wait = tokio::time::sleep(backoff.delay(failures));
        if stop.run_until_cancelled(wait).await.is_none() {
            return Ok(());
        }
    }
}

fn describe(end: Result<Result<(), String>, Box<dyn Any + Send>>) -> String {
    match end {
        Ok(Ok(())) => "ended".to_owned(),
        Ok(Err(error)) => format!("failed: {error}"),
        Err(panic) => {
            let message = panic
                .downcast_ref::<&str>()
                .copied()
                .or_else(|| panic.downcast_ref::<String>().map(String::as_str));
            format!("panicked: {}", message.unwrap_or("no message"))
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_part_that_ends_fails_or_panics_is_started_again() {
        let health = HealthHandle::new();
        let stop = CancellationToken::new();
        let starts = AtomicU32::new(0);
        let ended = supervise("part", &health, &stop, async || {
            match starts.fetch_add(1, Ordering::SeqCst) {
                0 => Ok(()),
                1 => Err("broken".to_owned()),
                2 => {
                    assert_eq!(
                        health.get().to_string(),
                        "degraded: the part failed: broken; it is started again"
                    );
                    std::panic::panic_any("oh no")
                }
                _ => {
                    assert_eq!(
                        health.get().to_string(),
                        "degraded: the part panicked: oh no; it is started again"
                    );
                    tokio::time::sleep(STEADY * 2).await;
                    assert!(health.get().is_healthy());
                    stop.cancel();
                    Err("broken".to_owned())
                }
            }
        });
        assert!(ended.await.is_err());
        assert_eq!(starts.load(Ordering::SeqCst), 4);
    }
}
