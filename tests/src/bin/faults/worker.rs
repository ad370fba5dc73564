use std::env;
use std::io::Read;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use outbox_runtime::app::{App, AppError, RunningApp};
use outbox_runtime::backoff::Backoff;
use outbox_runtime::broker::Broker;
use outbox_runtime::health::{HealthHandle, Readiness};
use outbox_runtime::inbox::ConsumerOptions;
use outbox_runtime::relay::RelayOptions;
use outbox_runtime::retention::{Cleaner, Keep, Retention};
use outbox_runtime::{Clock, Outbox, fault};
use outbox_tests::faults::{BrokerAddress, BrokerClient, PLAN, Plan, Wire};
use tokio::signal::unix::{SignalKind, signal};
use tokio::task::JoinSet;
use tracing::Level;

use crate::handlers::{Conduct, WorkDb};
use crate::publisher::TestPublisher;
use crate::subscriber::TestSubscriber;
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
    writing.spawn(tell(app.health()));
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

/// Logs the health whenever it becomes another.
async fn tell(health: HealthHandle) {
    let word = |readiness: &Readiness| match readiness {
        Readiness::Ready => "ready",
        Readiness::Degraded { .. } => "degraded",
        _ => "not ready",
    };
    let mut last = "";
    loop {
        let readiness = health.wait_for_readiness(|now| word(now) != last).await;
        last = word(&readiness);
        tracing::warn!("the app is {readiness}");
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
    let (broker, wire) = connect(plan);
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
        .lease(plan.lease)
        .broker_timeout(plan.publish_timeout)
        .backoff(backoff);
    let mut app = App::new(outbox.clone())
        .publisher(TestPublisher {
            broker: Arc::clone(&broker),
            wire: wire.clone(),
            sabotage: plan.sabotage,
        })
        .subscriber(TestSubscriber {
            broker,
            wire,
            sabotage: plan.sabotage,
        })
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

/// The broker, and where to write down what goes to it and comes from it.
fn connect(plan: &Plan) -> (Arc<dyn Broker>, Option<Arc<Wire>>) {
    match &plan.broker {
        BrokerAddress::Harness(address) => (Arc::new(BrokerClient::new(address)), None),
        #[cfg(feature = "brokers")]
        BrokerAddress::Real {
            url,
            namespace,
            member,
            wire,
        } => {
            // Below the relay's own limit for a call.
            let confirm_within = plan.publish_timeout * 2 / 3;
            let broker = outbox_tests::faults::real::open_broker(
                url,
                namespace,
                member.as_deref(),
                confirm_within,
            );
            let broker = broker.expect("a URL of a broker that is built in");
            (broker, Some(Arc::new(Wire::at(wire))))
        }
        #[cfg(not(feature = "brokers"))]
        BrokerAddress::Real { .. } => panic!("built without brokers"),
    }
}
