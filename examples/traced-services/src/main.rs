//! One OpenTelemetry trace across three services.
//!
//! Ordering, payment and shipping each have a database, a relay, consumers and a tracer of their
//! own, as three programs would. Here they are three threads of one program, since the broker between
//! them is the in-process one; nothing else joins them, and the trace context travels in the
//! envelopes alone. The program ends with the trace as a tree, and fails if it is not the expected
//! one.

mod services;
mod telemetry;
mod tree;

use std::error::Error;
use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use outbox_runtime::broker::{Subscriber, Subscription};
use outbox_runtime::prelude::*;
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePool};
use tokio::sync::Barrier;
use tokio::time::timeout;

use self::services::{Order, OrderId, Parcel, Payment, SERVICES, Service, is_sent, place_order};
use self::telemetry::Collected;
use self::tree::Tree;

type Failure = Box<dyn Error + Send + Sync>;

/// How long the order may take: far longer than it ever does.
const DEADLINE: Duration = Duration::from_secs(30);

/// What the services share, as programs share a broker.
#[derive(Clone)]
struct World {
    broker: InProcessBroker,
    collected: Collected,
    /// All have started; all are done.
    started: Arc<Barrier>,
    done: Arc<Barrier>,
}

fn main() -> Result<(), Failure> {
    telemetry::install()?;
    let folder = tempfile::tempdir()?;
    let world = World {
        broker: InProcessBroker::new(),
        collected: Collected::default(),
        started: Arc::new(Barrier::new(SERVICES.len())),
        done: Arc::new(Barrier::new(SERVICES.len())),
    };
    let services = SERVICES.map(|service| {
        let (world, folder) = (world.clone(), folder.path().to_owned());
        thread::spawn(move || run(&service, &folder, &world))
    });
    for service in services {
        service.join().map_err(|_| "a service panicked")??;
    }
    let tree = Tree::of_request(world.collected.spans())?;
    print!("{}", tree.text());
    Ok(())
}

/// A service from its start to its end, on a thread of its own.
fn run(service: &Service, folder: &Path, world: &World) -> Result<(), Failure> {
    let tracers = telemetry::enter_service(service.name, &world.collected)?;
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?
        .block_on(serve(service, folder, world))?;
    tracers.shutdown()?;
    Ok(())
}

async fn serve(service: &Service, folder: &Path, world: &World) -> Result<(), Failure> {
    let name = service.name;
    let options = SqliteConnectOptions::new()
        .filename(folder.join(format!("{name}.db")))
        .create_if_missing(true)
        .journal_mode(SqliteJournalMode::Wal);
    let pool = SqlitePool::connect_with(options).await?;
    sqlx::raw_sql(service.table).execute(&pool).await?;
    let outbox = Outbox::new(name, pool);
    outbox.migrate().await?;

    // A real broker has a queue for each service before anybody publishes. This one learns of a
    // service when it first subscribes, and from then on keeps nothing from it.
    let queue = Subscription::new(name, [service.hears]);
    drop(world.broker.subscribe(queue).await?);
    let app = App::new(outbox.clone())
        .broker(world.broker.clone())
        // The program holds the handlers and aggregates of all three.
        .select_consumers(move |consumer| consumer.starts_with(name))
        .without_table_check::<Order>()
        .without_table_check::<Payment>()
        .without_table_check::<Parcel>()
        .start()
        .await?;
    meet(&world.started).await?;
    let order = match name {
        "orders" => buy(&outbox).await,
        _ => Ok(()),
    };
    meet(&world.done).await?;
    app.shutdown().await?;
    order
}

/// Waits for the other services; if one of them failed, not for ever.
async fn meet(at: &Barrier) -> Result<(), Failure> {
    timeout(2 * DEADLINE, at.wait()).await?;
    Ok(())
}

/// Places an order and waits until it is on its way.
async fn buy(outbox: &Outbox<sqlx::Sqlite>) -> Result<(), Failure> {
    let id = OrderId::from("order-1".to_owned());
    place_order(outbox, id.clone()).await?;
    let sent = async {
        while !is_sent(outbox, &id).await? {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        Ok(())
    };
    timeout(DEADLINE, sent).await?
}
