//! Listings of the chapter on running an app.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use book_listings::SqliteFile;
use outbox_runtime::app::AppError;
use outbox_runtime::backoff::Backoff;
use outbox_runtime::broker::{PublishError, Publisher};
use outbox_runtime::domain::Message;
use outbox_runtime::inbox::{ConsumerOptions, OnUnreadable};
use outbox_runtime::prelude::*;
use outbox_runtime::relay::RelayOptions;
use outbox_runtime::retry::{OnDead, RetryPolicy};
use outbox_runtime::{Error, HandlerError};
use sqlx::Sqlite;

#[domain_event(version = 1)]
pub struct LampSwitched {
    pub on: bool,
}

#[derive(Clone, Default)]
pub struct Seen(Arc<AtomicU32>);

#[idempotent_handler(consumer = "house.count-lamps", key = "{message_id}")]
async fn count_lamps(
    _event: Envelope<LampSwitched>,
    _uow: &mut UnitOfWork<'_, Sqlite>,
    State(seen): State<Seen>,
) -> Result<(), HandlerError> {
    seen.0.fetch_add(1, Ordering::Relaxed);
    Ok(())
}

// ANCHOR: signal
/// Resolves when the process is asked to stop: Ctrl-C, or what a container engine sends.
async fn asked_to_stop() {
    use tokio::signal::unix::{SignalKind, signal};
    match signal(SignalKind::terminate()) {
        Ok(mut terminate) => {
            tokio::select! {
                _ = tokio::signal::ctrl_c() => {}
                _ = terminate.recv() => {}
            }
        }
        Err(_) => tokio::signal::ctrl_c().await.unwrap_or_default(),
    }
}
// ANCHOR_END: signal

// ANCHOR: service
async fn serve(outbox: Outbox<Sqlite>, seen: Seen) -> Result<(), AppError> {
    App::new(outbox)
        .broker(InProcessBroker::new())
        .state(seen)
        .shutdown_deadline(Duration::from_secs(20))
        .run_until(asked_to_stop())
        .await
}
// ANCHOR_END: service

async fn house() -> Result<(Outbox<Sqlite>, SqliteFile), Error> {
    let file = SqliteFile::with_tables("").await;
    let outbox = Outbox::new("house", file.pool.clone());
    outbox.migrate().await?;
    let mut uow = outbox.begin(MessageContext::new()).await?;
    uow.raise(LampSwitched { on: true })?;
    uow.commit().await?;
    Ok((outbox, file))
}

#[tokio::test]
async fn a_missing_state_is_reported_with_its_place() -> Result<(), Error> {
    let (outbox, _file) = house().await?;
    // ANCHOR: startup
    let answer = App::new(outbox)
        .broker(InProcessBroker::new())
        .run_until(asked_to_stop()) // `.state(Seen::default())` was forgotten
        .await;
    let Err(AppError::Startup(problems)) = answer else {
        panic!("the app started");
    };
    for problem in &problems {
        println!("{problem}"); // file:line: what is wrong, and what to do
    }
    // ANCHOR_END: startup
    assert_eq!(problems.len(), 1);
    assert!(problems[0].to_string().contains("tests/running.rs:"));
    Ok(())
}

#[tokio::test]
async fn a_service_handles_what_was_committed_before_it_started() -> Result<(), Error> {
    let (outbox, _file) = house().await?;
    let seen = Seen::default();
    let service = tokio::spawn(serve(outbox, seen.clone()));
    wait_until(|| seen.0.load(Ordering::Relaxed) == 1).await;
    service.abort();
    Ok(())
}

async fn wait_until(done: impl Fn() -> bool) {
    let waiting = async {
        while !done() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), waiting)
        .await
        .expect("in time");
}

#[tokio::test]
async fn options_are_set_on_the_app() -> Result<(), Box<dyn std::error::Error>> {
    let (outbox, _file) = house().await?;
    // ANCHOR: options
    let patient = Backoff::new(Duration::from_millis(500), Duration::from_secs(120));
    let app = App::new(outbox)
        .broker(InProcessBroker::new())
        .state(Seen::default())
        .relay_options(RelayOptions::default().lease(Duration::from_secs(30)))
        .consumer_options(
            ConsumerOptions::default()
                .concurrency(8)
                .retry(RetryPolicy::new().max_attempts(50).backoff(patient))
                .retry_of(
                    "house.count-lamps",
                    RetryPolicy::new().on_dead(OnDead::GoOn),
                )
                .on_unreadable(OnUnreadable::Discard),
        );
    // ANCHOR_END: options
    app.start().await?.shutdown().await?;
    Ok(())
}

#[tokio::test]
async fn retries_are_a_policy() -> Result<(), Box<dyn std::error::Error>> {
    // ANCHOR: retry
    let backoff = Backoff::new(Duration::from_secs(1), Duration::from_secs(300));
    let patient = RetryPolicy::new()
        .max_attempts(50)
        .max_age(Duration::from_secs(3 * 24 * 3600))
        .backoff(backoff);
    // A price that no broker takes need not hold up the later ones.
    let prices = patient.on_dead(OnDead::GoOn);
    let options = RelayOptions::default()
        .retry(patient)
        .retry_event("PriceChanged", prices);
    // ANCHOR_END: retry
    options.check()?;
    Ok(())
}

#[tokio::test]
async fn pressure_has_bounds() -> Result<(), Box<dyn std::error::Error>> {
    // ANCHOR: pressure
    let options = RelayOptions::default()
        .batch_bytes(256 << 10)
        .max_in_flight_bytes(2 << 20)
        .max_held_bytes(16 << 20)
        .rate_limit(500, 100)
        .circuit_breaker(10)
        .backlog_ceiling(50_000, Duration::from_secs(60));
    // ANCHOR_END: pressure
    options.check()?;
    Ok(())
}

// ANCHOR: publisher
/// Sends each message to a web hook, say.
struct WebHook {
    is_up: bool,
}

#[async_trait::async_trait]
impl Publisher for WebHook {
    async fn publish(&self, messages: &[Message]) -> Vec<Result<(), PublishError>> {
        let mut results = Vec::with_capacity(messages.len());
        for message in messages {
            results.push(self.send(message).await);
        }
        results
    }
}

impl WebHook {
    async fn send(&self, message: &Message) -> Result<(), PublishError> {
        // Here the request would go out, with `message.metadata` as its headers.
        let _body: &str = &message.payload;
        if self.is_up {
            Ok(()) // the other side has it, and will keep it
        } else {
            Err(PublishError::transient("the hook does not answer"))
        }
    }
}
// ANCHOR_END: publisher

#[tokio::test]
async fn relay_and_consumers_can_be_separate() -> Result<(), Box<dyn std::error::Error>> {
    let (outbox, _file) = house().await?;
    let seen = Seen::default();
    let broker = InProcessBroker::new();
    // ANCHOR: separate
    let relay = App::new(outbox.clone())
        .publisher(broker.clone())
        .without_consumers();
    let consumers = App::new(outbox)
        .subscriber(broker)
        .state(seen.clone())
        .without_relay();
    // ANCHOR_END: separate
    let consumers = consumers.start().await?;
    let relay = relay.start().await?;
    wait_until(|| consumers.counts().consumers.handled + relay.counts().relay.published >= 1).await;
    relay.shutdown().await?;
    consumers.shutdown().await?;
    Ok(())
}

#[tokio::test]
async fn a_broker_that_is_down_degrades_the_health() -> Result<(), Box<dyn std::error::Error>> {
    let (outbox, _file) = house().await?;
    // ANCHOR: health
    let app = App::new(outbox)
        .publisher(WebHook { is_up: false })
        .without_consumers();
    let health = app.health();
    let running = app.start().await?;

    let degraded = health.wait_for(|health| !health.is_healthy()).await;
    println!("{degraded}"); // what waits, and why
    // ANCHOR_END: health
    running.shutdown().await?;
    Ok(())
}
