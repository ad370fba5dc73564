//! Handlers behind a real broker: what has an effect, how often, and what is kept.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    unreachable_pub
)]

use std::collections::HashSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use outbox_runtime::backoff::Backoff;
use outbox_runtime::broker::Broker;
use outbox_runtime::handler::States;
use outbox_runtime::health::HealthHandle;
use outbox_runtime::inbox::{Consumer, ConsumerOptions};
use outbox_runtime::prelude::*;
use outbox_tests::brokers::suite::{Ground, Member, event, wait_until};
use outbox_tests::brokers::{PlainMessage, TestBroker};
use outbox_tests::{Fixture, sqlite};
use sqlx::Sqlite;
use tokio::task::JoinHandle;

#[domain_event(version = 1)]
pub struct Happened {
    pub sequence: i64,
}

/// Which aggregates' handlers have panicked already.
#[derive(Clone, Default)]
struct Panicked(Arc<Mutex<HashSet<String>>>);

#[derive(Debug, thiserror::Error)]
enum Refused {
    #[error("scripted")]
    Scripted,
    #[error(transparent)]
    Store(#[from] outbox_runtime::Error),
    #[error(transparent)]
    Database(#[from] sqlx::Error),
}

impl Classify for Refused {
    fn failure_kind(&self) -> FailureKind {
        match self {
            Self::Scripted => FailureKind::Permanent,
            Self::Store(error) => error.failure_kind(),
            Self::Database(_) => FailureKind::Transient,
        }
    }
}

/// Writes down what happened, in the order in which it does. `poison` is refused for good, `panic`
/// panics at first.
#[idempotent_handler(consumer = "record", key = "{aggregate_id}:{event.sequence}")]
async fn record(
    event: Envelope<Happened>,
    uow: &mut UnitOfWork<'_, Sqlite>,
    State(panicked): State<Panicked>,
) -> Result<(), Refused> {
    let aggregate = event.metadata.aggregate.clone();
    let id = aggregate
        .map(|aggregate| aggregate.aggregate_id)
        .unwrap_or_default();
    sqlx::query("INSERT INTO effect (aggregate, sequence) VALUES (?, ?)")
        .bind(&id)
        .bind(event.sequence)
        .execute(uow.connection().await?)
        .await?;
    match id.as_str() {
        "poison" => Err(Refused::Scripted),
        "panic" if panicked.0.lock().unwrap().insert(id.clone()) => {
            std::panic::panic_any("scripted")
        }
        _ => Ok(()),
    }
}

/// Two instances of a service handle while they, and the broker, die in turn.
pub async fn an_effect_is_there_once_although_broker_and_consumers_die<B: TestBroker>() {
    let Some(mut ground) = Ground::<B>::private() else {
        return;
    };
    let fixture = with_effects().await;
    let broker = ground.broker();
    introduce(&broker).await;
    let panicked = Panicked::default();
    let mut instances = [0, 1].map(|_| start(&fixture, &ground.broker(), &panicked));
    let publishing = tokio::spawn(async move {
        for round in 0..30 {
            let mut messages: Vec<_> = (0..20)
                .map(|n| event("Happened", &n.to_string(), round + 1))
                .collect();
            while !messages.is_empty() {
                let mut results = broker.publish(&messages).await.into_iter();
                messages.retain(|_| results.next().unwrap().is_err());
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        }
    });
    for turn in 0..4 {
        let so_far = 100 * (turn + 1);
        wait_until("effects are there", async || {
            effects(&fixture).await >= so_far
        })
        .await;
        if turn == 1 {
            let server = ground.server();
            match B::KIND.keeps_confirmed_when_killed() {
                true => server.kill(),
                false => server.stop(),
            }
            tokio::time::sleep(Duration::from_millis(200)).await;
            server.run().unwrap();
        }
        let instance = &mut instances[turn as usize % 2];
        instance.abort();
        *instance = start(&fixture, &ground.broker(), &panicked);
    }
    publishing.await.unwrap();
    wait_until("all effects are there", async || {
        effects(&fixture).await >= 600
    })
    .await;
    // What is on its way again must not have a second effect.
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(effects(&fixture).await, 600);
    let out_of_order = "SELECT count(*) FROM effect AS earlier JOIN effect AS later \
        ON later.aggregate = earlier.aggregate AND later.id > earlier.id \
        WHERE later.sequence <= earlier.sequence";
    assert_eq!(fixture.number(out_of_order).await, 0);
    assert_eq!(fixture.number("SELECT count(*) FROM inbox_parked").await, 0);
    instances.iter().for_each(JoinHandle::abort);
}

/// A service that only consumes says that its broker is away, and that it is back.
pub async fn health_tells_of_a_broker_that_is_away<B: TestBroker>() {
    let Some(mut ground) = Ground::<B>::private() else {
        return;
    };
    let fixture = with_effects().await;
    let broker = ground.broker();
    introduce(&broker).await;
    let (health, instance) = start_with_health(&fixture, &broker, &Panicked::default());
    let patience = Duration::from_secs(90);
    let publish = async |sequence| {
        let message = [event("Happened", "1", sequence)];
        wait_until("it is published", async || {
            broker.publish(&message).await[0].is_ok()
        })
        .await;
        wait_until("it is handled", async || {
            effects(&fixture).await == sequence
        })
        .await;
    };
    publish(1).await;
    let healthy = health.wait_for(|health| health.is_healthy());
    tokio::time::timeout(patience, healthy)
        .await
        .expect("it is healthy");
    ground.server().stop();
    let degraded = health.wait_for(|health| !health.is_healthy());
    let degraded = tokio::time::timeout(patience, degraded).await;
    println!("{}", degraded.expect("it is told"));
    ground.server().run().unwrap();
    let healthy = health.wait_for(|health| health.is_healthy());
    tokio::time::timeout(patience, healthy)
        .await
        .expect("it is healthy again");
    publish(2).await;
    instance.abort();
}

/// One aggregate fails for good, one handler panics, one message is none.
pub async fn poison_stops_its_own_aggregate_and_what_is_malformed_is_kept<B: TestBroker>() {
    let Some(ground) = Ground::<B>::shared() else {
        return;
    };
    let fixture = with_effects().await;
    let broker = ground.broker();
    introduce(&broker).await;
    let instance = start(&fixture, &broker, &Panicked::default());
    let mut messages = Vec::new();
    for sequence in 1..=10 {
        for id in ["poison", "panic", "a", "b"] {
            messages.push(event("Happened", id, sequence));
        }
    }
    for result in broker.publish(&messages).await {
        result.unwrap();
    }
    let malformed = PlainMessage {
        event_type: "Happened".to_owned(),
        key: "a".to_owned(),
        body: b"no event: \xff".to_vec(),
        ..PlainMessage::default()
    };
    B::send(&ground.url, &ground.topics, malformed).await;
    wait_until("three aggregates are through", async || {
        effects(&fixture).await == 30
    })
    .await;
    let parked =
        "SELECT count(*) FROM inbox_parked WHERE consumer = 'record' AND aggregate_id = 'poison'";
    wait_until("the poison is parked", async || {
        fixture.number(parked).await == 10
    })
    .await;
    let kept = "SELECT payload FROM inbox_parked WHERE consumer = '' AND state = 'dead'";
    wait_until("the malformed one is kept", async || {
        fixture.texts(kept).await == ["bm8gZXZlbnQ6IP8="]
    })
    .await;
    let cause = fixture
        .texts("SELECT last_cause FROM inbox_parked WHERE consumer = ''")
        .await;
    assert!(cause[0].contains("no CloudEvent"), "{cause:?}");
    let poisoned = "SELECT count(*) FROM effect WHERE aggregate = 'poison'";
    assert_eq!(fixture.number(poisoned).await, 0);
    // All of it is acknowledged: nothing comes again to the next instance.
    instance.abort();
    let next = start(&fixture, &ground.broker(), &Panicked::default());
    for result in broker.publish(&[event("Happened", "b", 11)]).await {
        result.unwrap();
    }
    wait_until("the next one is handled", async || {
        effects(&fixture).await == 31
    })
    .await;
    assert_eq!(
        fixture.number("SELECT count(*) FROM inbox_parked").await,
        11
    );
    next.abort();
}

fn start(
    fixture: &Fixture<Sqlite>,
    broker: &Arc<dyn Broker>,
    panicked: &Panicked,
) -> JoinHandle<()> {
    start_with_health(fixture, broker, panicked).1
}

fn start_with_health(
    fixture: &Fixture<Sqlite>,
    broker: &Arc<dyn Broker>,
    panicked: &Panicked,
) -> (HealthHandle, JoinHandle<()>) {
    let mut states = States::default();
    states.insert(panicked.clone());
    let backoff = Backoff::new(Duration::from_millis(5), Duration::from_millis(100));
    let options = ConsumerOptions::new()
        .backoff(backoff)
        .lease(Duration::from_millis(1500))
        .poll_interval(Duration::from_millis(50));
    let consumer = Consumer::new(fixture.outbox.clone(), Arc::clone(broker))
        .with_states(states)
        .with_options(options)
        .select_consumers(|name| name == "record");
    let health = consumer.health();
    let task = tokio::spawn(async move {
        consumer.run_until(std::future::pending()).await.unwrap();
    });
    (health, task)
}

/// Makes what the service's group needs at the broker, where a group gets only what is published
/// after that.
async fn introduce(broker: &Arc<dyn Broker>) {
    Member::join(broker, "test", &["Happened"])
        .await
        .leave()
        .await;
}

async fn with_effects() -> Fixture<Sqlite> {
    let fixture = sqlite().await;
    fixture
        .run_sql(
            "CREATE TABLE effect (
                id INTEGER PRIMARY KEY AUTOINCREMENT, aggregate TEXT NOT NULL, sequence BIGINT NOT NULL
            )",
        )
        .await;
    fixture
}

async fn effects(fixture: &Fixture<Sqlite>) -> i64 {
    fixture.number("SELECT count(*) FROM effect").await
}

/// Makes a test of each for one broker.
macro_rules! handling_suite {
    ($kit:ty) => {
        mod handling {
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn an_effect_is_there_once_although_broker_and_consumers_die() {
                crate::broker_support::an_effect_is_there_once_although_broker_and_consumers_die::<
                    $kit,
                >()
                .await;
            }

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn health_tells_of_a_broker_that_is_away() {
                crate::broker_support::health_tells_of_a_broker_that_is_away::<$kit>().await;
            }

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn poison_stops_its_own_aggregate_and_what_is_malformed_is_kept() {
                crate::broker_support::poison_stops_its_own_aggregate_and_what_is_malformed_is_kept::<
                    $kit,
                >()
                .await;
            }
        }
    };
}
pub(crate) use handling_suite;
