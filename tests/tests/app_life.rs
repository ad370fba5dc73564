//! An app from its start to its rest: events flow, failures pass, nothing is lost.

#![allow(clippy::unwrap_used, unreachable_pub)]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use outbox_runtime::app::{App, AppError, RunningApp};
use outbox_runtime::backoff::Backoff;
use outbox_runtime::broker::{
    BrokerError, Deliveries, InProcessBroker, PublishError, Publisher, Subscriber, Subscription,
};
use outbox_runtime::health::Health;
use outbox_runtime::inbox::ConsumerOptions;
use outbox_runtime::prelude::*;
use outbox_runtime::relay::RelayOptions;
use outbox_runtime::{Error, Message};
use outbox_tests::{Fixture, TestDatabase, bank, on_both_databases};
use tokio::sync::{Semaphore, oneshot};

on_both_databases!(
    events_flow_from_a_commit_to_the_last_effect,
    a_broker_that_is_down_at_the_start_is_waited_for,
    a_part_that_panics_is_started_again,
    an_app_that_stops_and_starts_again_loses_and_repeats_nothing,
    a_handler_that_outlives_the_deadline_is_named,
);

/// What was logged in a test.
#[derive(Clone, Default)]
struct Log(Arc<std::sync::Mutex<Vec<u8>>>);

impl Log {
    fn text(&self) -> String {
        String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
    }
}

impl std::io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// A type that was renamed without keeping its name changes what consumers wait for.
#[tokio::test]
async fn a_name_that_nobody_writes_any_more_is_told_at_the_start() {
    let fixtures = (outbox_tests::sqlite().await, outbox_tests::postgres().await);
    let log = Log::default();
    let writer = log.clone();
    let subscriber = tracing_subscriber::fmt()
        .with_writer(move || writer.clone())
        .finish();
    let _guard = tracing::subscriber::set_default(subscriber);
    assert!(
        started_with_old_names(&fixtures.0, &log)
            .await
            .contains("order.old-name")
    );
    if let Some(fixture) = fixtures.1 {
        log.0.lock().unwrap().clear();
        assert!(
            started_with_old_names(&fixture, &log)
                .await
                .contains("order.old-name")
        );
    }
}

async fn started_with_old_names<DB: TestDatabase>(fixture: &Fixture<DB>, log: &Log) -> String {
    create_orders(fixture).await;
    fixture
        .run_sql(
            "INSERT INTO outbox_message (event_type, producer, payload) VALUES
             ('order.old-name', 'test', '{}'), ('Placed', 'test', '{}'), ('foreign', 'other', '{}')",
        )
        .await;
    let app = app(fixture).without_relay().without_consumers();
    let running = app.start().await.unwrap();
    running.shutdown().await.unwrap();
    let text = log.text();
    assert!(text.contains("name = "), "the remedy: {text}");
    assert!(
        !text.contains("Placed") && !text.contains("foreign"),
        "{text}"
    );
    text
}

typed_id! { pub struct OrderId(i64); }

/// An order came in.
#[domain_event(version = 1)]
pub struct Placed {
    pub order: OrderId,
}

/// An order was billed.
#[domain_event(version = 1)]
pub struct Billed {
    pub order: OrderId,
}

/// What was ordered.
#[aggregate(table = "orders", events(Placed, Billed))]
pub struct Order {
    id: OrderId,
    billed: i64,
    shipped: i64,
    root: AggregateRoot,
}

#[idempotent_handler(consumer = "billing", key = "{event.order}")]
async fn bill<DB: Stores<Order>>(
    event: Envelope<Placed>,
    uow: &mut UnitOfWork<'_, DB>,
    State(gate): State<Gate>,
) -> Result<(), Error> {
    gate.pass().await;
    let mut order = uow.get::<Order>(&event.order).await?;
    order.billed += 1;
    let id = order.id.clone();
    order.raise(Billed { order: id });
    uow.save(&mut order).await
}

#[idempotent_handler(consumer = "shipping", key = "{event.order}")]
async fn ship<DB: Stores<Order>>(
    event: Envelope<Billed>,
    uow: &mut UnitOfWork<'_, DB>,
) -> Result<(), Error> {
    let mut order = uow.get::<Order>(&event.order).await?;
    order.shipped += 1;
    uow.save(&mut order).await
}

/// Open, unless a test closes it.
#[derive(Clone, Default)]
pub struct Gate {
    closed: Option<Arc<Semaphore>>,
    reached: Arc<AtomicUsize>,
}

impl Gate {
    async fn pass(&self) {
        self.reached.fetch_add(1, Ordering::SeqCst);
        if let Some(closed) = &self.closed {
            closed.acquire().await.unwrap().forget();
        }
    }
}

/// A broker that can be down, and whose subscription panics as often as it is told.
#[derive(Clone)]
struct Moody {
    inner: InProcessBroker,
    is_down: Arc<AtomicBool>,
    panics: Arc<AtomicUsize>,
}

impl Moody {
    fn new(is_down: bool, panics: usize) -> Self {
        Self {
            inner: InProcessBroker::new(),
            is_down: Arc::new(AtomicBool::new(is_down)),
            panics: Arc::new(AtomicUsize::new(panics)),
        }
    }

    fn is_down(&self) -> bool {
        self.is_down.load(Ordering::SeqCst)
    }
}

#[async_trait]
impl Publisher for Moody {
    async fn publish(&self, messages: &[Message]) -> Vec<Result<(), PublishError>> {
        if self.is_down() {
            let refused = || Err(PublishError::transient("connection refused"));
            return messages.iter().map(|_| refused()).collect();
        }
        self.inner.publish(messages).await
    }
}

#[async_trait]
impl Subscriber for Moody {
    async fn subscribe(&self, wanted: Subscription) -> Result<Box<dyn Deliveries>, BrokerError> {
        if self.is_down() {
            return Err(BrokerError::new("subscribing", "connection refused"));
        }
        let left = self.panics.load(Ordering::SeqCst);
        if left > 0 {
            self.panics.store(left - 1, Ordering::SeqCst);
            std::panic::panic_any("scripted panic");
        }
        self.inner.subscribe(wanted).await
    }
}

async fn create_orders<DB: TestDatabase>(fixture: &Fixture<DB>) {
    fixture
        .run_sql(
            "CREATE TABLE orders (id bigint PRIMARY KEY, billed bigint NOT NULL, \
             shipped bigint NOT NULL, version bigint NOT NULL)",
        )
        .await;
}

async fn place<DB: TestDatabase + Stores<Order>>(fixture: &Fixture<DB>, ids: std::ops::Range<i64>) {
    for id in ids {
        let mut uow = fixture.outbox.begin(MessageContext::new()).await.unwrap();
        let mut order = Order {
            id: OrderId::from(id),
            billed: 0,
            shipped: 0,
            root: AggregateRoot::new(),
        };
        order.raise(Placed {
            order: OrderId::from(id),
        });
        uow.add(&mut order).await.unwrap();
        uow.commit().await.unwrap();
    }
}

fn app<DB: TestDatabase>(fixture: &Fixture<DB>) -> App<DB> {
    let backoff = Backoff::new(Duration::from_millis(1), Duration::from_millis(50));
    App::new(fixture.outbox.clone())
        .without_table_check::<bank::Account>()
        .state(Gate::default())
        .relay_options(RelayOptions::default().backoff(backoff))
        .consumer_options(ConsumerOptions::default().backoff(backoff))
}

/// Waits until so many orders are shipped, each once.
async fn wait_for_shipped<DB: TestDatabase>(fixture: &Fixture<DB>, count: i64) {
    let waiting = async {
        while shipped(fixture).await < count {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), waiting)
        .await
        .expect("the orders are shipped");
    let wrong = "SELECT count(*) FROM orders WHERE billed > 1 OR shipped > 1 OR billed < shipped";
    assert_eq!(fixture.number(wrong).await, 0);
}

async fn shipped<DB: TestDatabase>(fixture: &Fixture<DB>) -> i64 {
    fixture
        .number("SELECT count(*) FROM orders WHERE shipped = 1")
        .await
}

async fn wait_until_done(running: &RunningApp, published: u64) {
    let waiting = async {
        while running.counts().relay.published < published {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), waiting)
        .await
        .expect("all is published");
}

async fn events_flow_from_a_commit_to_the_last_effect<DB>(fixture: Fixture<DB>)
where
    DB: TestDatabase + Stores<Order>,
{
    create_orders(&fixture).await;
    let running = app(&fixture)
        .broker(InProcessBroker::new())
        .start()
        .await
        .unwrap();
    place(&fixture, 0..100).await;
    wait_for_shipped(&fixture, 100).await;
    wait_until_done(&running, 200).await;
    let counts = running.counts();
    assert_eq!(counts.relay.published, 200);
    assert_eq!(counts.consumers.handled, 200);
    assert!(running.health().get().is_healthy());
    running.shutdown().await.unwrap();
}

async fn a_broker_that_is_down_at_the_start_is_waited_for<DB>(fixture: Fixture<DB>)
where
    DB: TestDatabase + Stores<Order>,
{
    create_orders(&fixture).await;
    let broker = Moody::new(true, 0);
    place(&fixture, 0..10).await;
    let running = app(&fixture).broker(broker.clone()).start().await.unwrap();
    let health = running
        .health()
        .wait_for(|health| !health.is_healthy())
        .await;
    assert!(
        health.to_string().contains("connection refused"),
        "{health}"
    );
    place(&fixture, 10..20).await;
    assert_eq!(running.counts().relay.published, 0);

    broker.is_down.store(false, Ordering::SeqCst);
    wait_for_shipped(&fixture, 20).await;
    assert!(
        running
            .health()
            .wait_for(Health::is_healthy)
            .await
            .is_healthy()
    );

    // And once more while it runs.
    broker.is_down.store(true, Ordering::SeqCst);
    place(&fixture, 20..30).await;
    let health = running
        .health()
        .wait_for(|health| !health.is_healthy())
        .await;
    assert!(
        health.to_string().contains("connection refused"),
        "{health}"
    );
    broker.is_down.store(false, Ordering::SeqCst);
    wait_for_shipped(&fixture, 30).await;
    assert!(
        running
            .health()
            .wait_for(Health::is_healthy)
            .await
            .is_healthy()
    );
    running.shutdown().await.unwrap();
}

async fn a_part_that_panics_is_started_again<DB>(fixture: Fixture<DB>)
where
    DB: TestDatabase + Stores<Order>,
{
    create_orders(&fixture).await;
    let running = app(&fixture)
        .broker(Moody::new(false, 2))
        .start()
        .await
        .unwrap();
    let health = running
        .health()
        .wait_for(|health| !health.is_healthy())
        .await;
    assert!(health.to_string().contains("scripted panic"), "{health}");
    place(&fixture, 0..10).await;
    wait_for_shipped(&fixture, 10).await;
    running.shutdown().await.unwrap();
}

async fn an_app_that_stops_and_starts_again_loses_and_repeats_nothing<DB>(fixture: Fixture<DB>)
where
    DB: TestDatabase + Stores<Order>,
{
    create_orders(&fixture).await;
    place(&fixture, 0..200).await;
    let mut stopped = 0;
    while shipped(&fixture).await < 200 {
        // A process of its own has a broker of its own: what was in it is gone.
        let (stop, stopping) = oneshot::channel::<()>();
        let shutdown = async {
            let _ = stopping.await;
        };
        let app = app(&fixture).broker(InProcessBroker::new());
        let running = tokio::spawn(app.run_until(shutdown));
        let target = (shipped(&fixture).await + 40).min(200);
        wait_for_shipped(&fixture, target).await;
        stop.send(()).unwrap();
        running.await.unwrap().unwrap();
        stopped += 1;
    }
    assert!(stopped > 1, "it was never stopped midway");
    wait_for_shipped(&fixture, 200).await;
    assert_eq!(fixture.events().await, 400);
}

async fn a_handler_that_outlives_the_deadline_is_named<DB>(fixture: Fixture<DB>)
where
    DB: TestDatabase + Stores<Order>,
{
    create_orders(&fixture).await;
    let gate = Gate {
        closed: Some(Arc::new(Semaphore::new(0))),
        ..Gate::default()
    };
    let running = app(&fixture)
        .broker(InProcessBroker::new())
        .state(gate.clone())
        .shutdown_deadline(Duration::from_secs(1))
        .start()
        .await
        .unwrap();
    place(&fixture, 0..1).await;
    while gate.reached.load(Ordering::SeqCst) == 0 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let Err(AppError::Deadline { unfinished, .. }) = running.shutdown().await else {
        panic!("it came to rest");
    };
    assert!(unfinished.contains("1 message(s)"), "{unfinished}");
    assert_eq!(fixture.number("SELECT billed FROM orders").await, 0);

    let running = app(&fixture)
        .broker(InProcessBroker::new())
        .start()
        .await
        .unwrap();
    wait_for_shipped(&fixture, 1).await;
    running.shutdown().await.unwrap();
}
