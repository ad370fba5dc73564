use std::env;
use std::io::Read;
use std::process::ExitCode;
use std::time::{Duration, SystemTime};

use outbox_runtime::app::{App, AppError, RunningApp};
use outbox_runtime::backoff::Backoff;
use outbox_runtime::inbox::ConsumerOptions;
use outbox_runtime::relay::RelayOptions;
use outbox_runtime::retention::{Cleaner, Keep, Retention};
use outbox_runtime::{Clock, Outbox, fault};
use outbox_tests::faults::{BrokerClient, PLAN, Plan};
use tokio::signal::unix::{SignalKind, signal};
use tokio::task::JoinSet;
use tracing::Level;

use crate::handlers::{Conduct, WorkDb};
use crate::publisher::TestPublisher;
use crate::writers::write;

/// A worker's work, until SIGTERM.
pub(crate) async fn run() -> ExitCode {
    end_with_parent();
    tracing_subscriber::fmt()
        .with_max_level(Level::WARN)
        .with_writer(std::io::stderr)
        .with_ansi(false)
        .init();
    fault::install_from_env().expect("fault points that exist");
    let plan = env::var(PLAN).expect("a plan");
    let plan: Plan = serde_json::from_str(&plan).expect("a plan");
    if plan.url.starts_with("postgres") {
        work::<sqlx::Postgres>(plan).await
    } else {
        work::<sqlx::Sqlite>(plan).await
    }
}

/// A worker whose director was killed has nothing more to do.
fn end_with_parent() {
    std::thread::spawn(|| {
        let mut nothing = [0];
        while matches!(std::io::stdin().read(&mut nothing), Ok(1..)) {}
        std::process::abort();
    });
}

async fn work<DB: WorkDb>(plan: Plan) -> ExitCode {
    let mut terminate = signal(SignalKind::terminate()).expect("a signal handler");
    let starting = async {
        loop {
            // The database may be away at this moment.
            match start::<DB>(&plan).await {
                Ok(started) => return started,
                Err(error) => tracing::warn!(%error, "not started yet"),
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    };
    let (outbox, app) = tokio::select! {
        started = starting => started,
        _ = terminate.recv() => return ExitCode::SUCCESS,
    };
    let mut writing = JoinSet::new();
    if plan.cleans {
        writing.spawn(clean(outbox.clone()));
    }
    for number in 0..plan.writers {
        writing.spawn(write(outbox.clone(), plan.clone(), number));
    }
    terminate.recv().await;
    writing.shutdown().await;
    match app.shutdown().await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            tracing::error!(%error, "no good end");
            ExitCode::from(3)
        }
    }
}

/// Removes what is finished, also while others do.
async fn clean<DB: WorkDb>(outbox: Outbox<DB>) {
    let keep = Keep::for_age(Duration::ZERO);
    let retention = Retention::new()
        .outbox(keep)
        .journal(keep)
        .chunk(500)
        .pause(Duration::from_millis(1))
        .archive();
    let cleaner = Cleaner::new(outbox, retention).expect("a retention that can be used");
    loop {
        if let Err(error) = cleaner.clean_once().await {
            let cause = std::error::Error::source(&error).map(ToString::to_string);
            let cause = cause.unwrap_or_default();
            // SQLite's file was another process's for longer than a worker waits: no deadlock, and
            // the next round goes on where this one ended.
            match cause.contains("database is locked") {
                true => tracing::warn!(cause, "a cleaner had no turn"),
                false => tracing::warn!(%error, cause, "a cleaner failed"),
            }
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

async fn start<DB: WorkDb>(plan: &Plan) -> Result<(Outbox<DB>, RunningApp), AppError> {
    let pool = DB::open(&plan.url).await;
    let pool = pool.map_err(|source| {
        AppError::Database(outbox_runtime::Error::Database {
            doing: "connecting",
            source,
        })
    })?;
    let shift = Duration::from_secs(plan.clock_shift.unsigned_abs());
    let is_ahead = plan.clock_shift >= 0;
    let clock = Clock::new(move || match is_ahead {
        true => SystemTime::now() + shift,
        false => SystemTime::now() - shift,
    });
    let outbox = Outbox::builder("faults", pool).clock(clock).build();
    let outbox = outbox.expect("plain names");
    let client = BrokerClient::new(&plan.broker);
    let conduct = Conduct::new(plan);
    let backoff = Backoff::new(Duration::from_millis(2), Duration::from_millis(100));
    let relay = RelayOptions::default()
        .lease(plan.lease)
        .publish_timeout(plan.publish_timeout)
        .poll_interval(plan.poll / 10, plan.poll)
        .batch_size(20)
        .backoff(backoff);
    // Each fault strikes processes that handle in batches, and such that don't, beside each other.
    let batch = if std::process::id().is_multiple_of(2) {
        8
    } else {
        1
    };
    let consumer = ConsumerOptions::new()
        .batch(batch)
        .poll_interval(plan.poll)
        .broker_timeout(plan.publish_timeout)
        .backoff(backoff);
    let mut app = App::new(outbox.clone())
        .publisher(TestPublisher::new(client.clone(), plan.sabotage))
        .subscriber(client)
        .state(conduct)
        .relay_options(relay)
        .consumer_options(consumer)
        .shutdown_deadline(Duration::from_secs(20));
    if !plan.relays {
        app = app.without_relay();
    }
    if !plan.consumes {
        app = app.without_consumers();
    }
    Ok((outbox, app.start().await?))
}
