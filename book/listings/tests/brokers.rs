//! Listings of the chapters on brokers.

use std::env;
use std::error::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use book_listings::SqliteFile;
use outbox_runtime::HandlerError;
use outbox_runtime::broker::{
    BrokerOptions, ConfigError, ForeignEvent, ForeignTopic, KafkaBroker, NatsBroker, QueueType,
    RabbitMqBroker, RedisBroker, Topics, open,
};
use outbox_runtime::prelude::*;
use sqlx::Sqlite;

#[domain_event(version = 1)]
pub struct DoorOpened {
    pub door: u32,
}

#[derive(Clone, Default)]
pub struct Seen(Arc<AtomicU32>);

#[idempotent_handler(consumer = "house.count-doors", key = "{message_id}")]
async fn count_doors(
    _event: Envelope<DoorOpened>,
    _uow: &mut UnitOfWork<'_, Sqlite>,
    State(seen): State<Seen>,
) -> Result<(), HandlerError> {
    seen.0.fetch_add(1, Ordering::Relaxed);
    Ok(())
}

// ANCHOR: open
/// What `BROKER_URL` names: nats://, kafka://, amqp:// or redis://.
fn app(outbox: Outbox<Sqlite>, broker_url: &str) -> Result<App<Sqlite>, ConfigError> {
    let broker = open(broker_url, BrokerOptions::new())?;
    Ok(App::new(outbox).broker(broker))
}
// ANCHOR_END: open

// ANCHOR: one
fn replicated(url: &str) -> Result<NatsBroker, ConfigError> {
    let broker = NatsBroker::new(url, BrokerOptions::new())?
        .replicas(3)
        .keep(Duration::from_secs(30 * 24 * 60 * 60));
    Ok(broker)
}
// ANCHOR_END: one

fn kafka() -> Result<KafkaBroker, ConfigError> {
    // ANCHOR: kafka
    let url = "kafka://kafka-1:9092,kafka-2:9092";
    let broker = KafkaBroker::new(url, BrokerOptions::new())?
        .set("compression.type", "lz4")?
        .set("session.timeout.ms", "6000")?;
    // ANCHOR_END: kafka
    Ok(broker)
}

fn rabbitmq() -> Result<RabbitMqBroker, ConfigError> {
    // ANCHOR: rabbitmq
    let url = "amqp://user:password@rabbit-1:5672,rabbit-2:5672/shop?heartbeat=10";
    let broker = RabbitMqBroker::new(url, BrokerOptions::new())?.queue_type(QueueType::Quorum);
    // ANCHOR_END: rabbitmq
    Ok(broker)
}

fn redis() -> Result<RedisBroker, ConfigError> {
    // ANCHOR: redis
    let week = Duration::from_secs(7 * 24 * 60 * 60);
    let broker = RedisBroker::new("redis://127.0.0.1:6379", BrokerOptions::new())?.keep(week);
    // ANCHOR_END: redis
    Ok(broker)
}

// ANCHOR: topics
fn options() -> Result<BrokerOptions, ConfigError> {
    let topics = Topics::new("shop")?
        .topic("InvoiceSent", "billing")?
        .topic("InvoicePaid", "billing")?;
    Ok(BrokerOptions::new().topics(topics))
}
// ANCHOR_END: topics

// ANCHOR: foreign
/// The doors' own controllers publish texts such as `open 17`.
fn doors(stream: &str) -> ForeignTopic {
    ForeignTopic::mapped(stream, |raw| {
        let text = std::str::from_utf8(&raw.body)?;
        let Some(door) = text.strip_prefix("open ") else {
            return Ok(None); // of no interest
        };
        let payload = serde_json::json!({ "door": door.parse::<u32>()? });
        Ok(Some(
            ForeignEvent::new("DoorOpened", payload.to_string()).aggregate("Door", door),
        ))
    })
}
// ANCHOR_END: foreign

#[tokio::test]
async fn an_app_relays_and_handles_through_the_broker_of_its_url() -> Result<(), Box<dyn Error>> {
    replicated("nats://127.0.0.1:4222")?;
    kafka()?;
    rabbitmq()?;
    redis()?;
    let _ = options()?.foreign(doors("doors"));
    let Ok(url) = env::var("OUTBOX_TEST_NATS_URL") else {
        assert!(
            env::var_os("OUTBOX_TEST_REQUIRE_ALL").is_none(),
            "OUTBOX_TEST_NATS_URL is not set; `cargo xtask test` sets it"
        );
        return Ok(());
    };
    let file = SqliteFile::with_tables("").await;
    let outbox = Outbox::new("house", file.pool.clone());
    outbox.migrate().await?;
    let seen = Seen::default();
    let running = app(outbox.clone(), &url)?
        .state(seen.clone())
        .start()
        .await?;
    let mut uow = outbox.begin(MessageContext::new()).await?;
    uow.raise(DoorOpened { door: 17 })?;
    uow.commit().await?;
    let handled = async {
        while seen.0.load(Ordering::Relaxed) == 0 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), handled).await?;
    running.shutdown().await?;
    Ok(())
}
