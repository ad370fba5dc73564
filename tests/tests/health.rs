//! What a process says when it is asked whether it lives and whether requests may come.
#![allow(clippy::unwrap_used, clippy::panic, unreachable_pub)]

mod consumer_support;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use consumer_support::{Account, Script, eventually, open_accounts, options};
use outbox_runtime::Message;
use outbox_runtime::app::App;
use outbox_runtime::broker::{
    BrokerError, Deliveries, InProcessBroker, PublishError, Publisher, Subscriber, Subscription,
};
use outbox_runtime::health::{Liveness, Readiness};
use outbox_runtime::prelude::*;
use outbox_tests::bank::BellRang;
use outbox_tests::{Fixture, TestDatabase, bank, on_both_databases, quick};

on_both_databases!(
    an_app_is_ready_from_its_start_to_its_shutdown,
    a_broker_that_is_down_degrades_and_keeps_requests_coming,
    a_database_that_does_not_answer_keeps_requests_out,
    a_dropped_app_is_not_ready_and_needs_no_restart,
);

/// A broker that can be down.
#[derive(Clone)]
struct Moody {
    inner: InProcessBroker,
    is_down: Arc<AtomicBool>,
}

impl Moody {
    fn down() -> Self {
        Self {
            inner: InProcessBroker::new(),
            is_down: Arc::new(AtomicBool::new(true)),
        }
    }

    fn come_up(&self) {
        self.is_down.store(false, Ordering::SeqCst);
    }
}

#[async_trait]
impl Publisher for Moody {
    async fn publish(&self, messages: &[Message]) -> Vec<Result<(), PublishError>> {
        if self.is_down.load(Ordering::SeqCst) {
            let refused = || Err(PublishError::transient("connection refused"));
            return messages.iter().map(|_| refused()).collect();
        }
        self.inner.publish(messages).await
    }
}

#[async_trait]
impl Subscriber for Moody {
    async fn subscribe(&self, wanted: Subscription) -> Result<Box<dyn Deliveries>, BrokerError> {
        if self.is_down.load(Ordering::SeqCst) {
            return Err(BrokerError::new("subscribing", "connection refused"));
        }
        self.inner.subscribe(wanted).await
    }
}

async fn app<DB: TestDatabase + Stores<Account>>(fixture: &Fixture<DB>) -> App<DB> {
    open_accounts(fixture, &[]).await;
    App::new(fixture.outbox.clone())
        .without_table_check::<bank::Account>()
        .state(Script::default())
        .consumer_options(options())
        .relay_options(quick())
}

async fn ring<DB: TestDatabase>(fixture: &Fixture<DB>) {
    let mut uow = fixture.outbox.begin(MessageContext::new()).await.unwrap();
    uow.raise(BellRang { times: 1 }).unwrap();
    uow.commit().await.unwrap();
}

async fn an_app_is_ready_from_its_start_to_its_shutdown<DB>(fixture: Fixture<DB>)
where
    DB: TestDatabase + Stores<Account>,
{
    let app = app(&fixture).await.broker(InProcessBroker::new());
    let health = app.health();
    assert_eq!(
        health.readiness().to_string(),
        "not ready: the app has not started yet"
    );
    assert_eq!(health.liveness(), Liveness::Alive);

    let running = app.start().await.unwrap();
    running.started().await;
    assert!(running.is_started());
    assert_eq!(health.readiness(), Readiness::Ready);
    let owned = "SELECT count(owner) FROM outbox_shard";
    assert_eq!(fixture.number(owned).await, 64, "the relay has its shards");

    running.shutdown().await.unwrap();
    assert_eq!(
        health.readiness().to_string(),
        "not ready: the app is stopping or has stopped"
    );
    assert_eq!(health.liveness(), Liveness::Alive);
}

async fn a_broker_that_is_down_degrades_and_keeps_requests_coming<DB>(fixture: Fixture<DB>)
where
    DB: TestDatabase + Stores<Account>,
{
    let broker = Moody::down();
    let app = app(&fixture).await.broker(broker.clone());
    let health = app.health();
    let running = app.start().await.unwrap();
    let readiness = health.wait_for_readiness(Readiness::is_ready).await;
    assert!(
        matches!(readiness, Readiness::Degraded { .. }),
        "{readiness}"
    );
    assert!(
        readiness.to_string().contains("connection refused"),
        "{readiness}"
    );
    assert!(!running.is_started(), "nothing flows");
    ring(&fixture).await;
    assert_eq!(fixture.events().await, 1, "writes are taken");
    assert_eq!(running.counts().relay.published, 0);

    broker.come_up();
    running.started().await;
    eventually(|| running.counts().relay.published == 1).await;
    let ready = |readiness: &Readiness| *readiness == Readiness::Ready;
    health.wait_for_readiness(ready).await;
    assert_eq!(health.liveness(), Liveness::Alive);
    running.shutdown().await.unwrap();
}

/// Its pool is closed, which is as final as the end of a database.
async fn a_database_that_does_not_answer_keeps_requests_out<DB>(fixture: Fixture<DB>)
where
    DB: TestDatabase + Stores<Account>,
{
    let app = app(&fixture).await.broker(InProcessBroker::new());
    let app = app.shutdown_deadline(Duration::from_secs(1));
    let health = app.health();
    let running = app.start().await.unwrap();
    running.started().await;
    assert!(health.readiness().is_ready());
    fixture.pool.close().await;
    let unready = health.wait_for_readiness(|readiness| !readiness.is_ready());
    let unready = tokio::time::timeout(Duration::from_secs(60), unready).await;
    let text = unready.unwrap().to_string();
    assert!(
        text.starts_with("not ready: the database can't be reached"),
        "{text}"
    );
    assert_eq!(
        health.liveness(),
        Liveness::Alive,
        "a restart would not bring it back"
    );
    let _ = running.shutdown().await;
}

async fn a_dropped_app_is_not_ready_and_needs_no_restart<DB>(fixture: Fixture<DB>)
where
    DB: TestDatabase + Stores<Account>,
{
    let running = app(&fixture)
        .await
        .broker(InProcessBroker::new())
        .start()
        .await
        .unwrap();
    running.started().await;
    let health = running.health();
    drop(running);
    assert!(!health.readiness().is_ready());
    // The parts end a moment later.
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert_eq!(health.liveness(), Liveness::Alive);
}
