//! One service: the handlers of its context, on its own database.

use std::time::Duration;

use order_fulfilment::BoundedContext;
use order_fulfilment::Limits;
use order_fulfilment::inventory::Stock;
use order_fulfilment::ordering::Order;
use order_fulfilment::payment::Account;
use outbox_runtime::app::App;
use outbox_runtime::backoff::Backoff;
use outbox_runtime::inbox::ConsumerOptions;
use sqlx::Postgres;
use tracing::info;

use crate::args::ServiceOptions;
use crate::broker::Opened;
use crate::database::Server;
use crate::process::{DEADLINE, Row, Shutdown, tell_health};

/// The handlers take half of them.
const CONNECTIONS: u32 = 16;

/// Runs it until the signal.
pub(crate) async fn run(
    server: &Server,
    broker: Opened,
    options: &ServiceOptions,
    mut shutdown: Shutdown,
) -> anyhow::Result<()> {
    let context = options.name.context();
    let outbox = server.open(context, CONNECTIONS).await?;
    let row = Row::insert(outbox.pool().clone(), context.name(), &broker.place).await?;
    let consuming = ConsumerOptions::new()
        .lease(options.lease)
        .backoff(Backoff::new(
            Duration::from_millis(100),
            Duration::from_secs(2),
        ));
    // ANCHOR: app
    let app = App::new(outbox)
        .subscriber(broker.broker)
        .consumer_options(consuming)
        .state(Limits::default())
        // Another process takes the events from here to the broker.
        .without_relay()
        // The program holds the handlers of all services, and this process runs those of one.
        .select_consumers(move |consumer| context.has_consumer(consumer))
        .shutdown_deadline(DEADLINE);
    // ANCHOR_END: app
    let app = only_own_table(app, context).start().await?;
    info!(
        "{} has started; its broker is {}",
        context.name(),
        broker.place
    );
    tokio::select! {
        () = shutdown.requested() => {}
        () = row.keep(&app) => {}
        () = tell_health(context.name(), app.health()) => {}
    }
    app.shutdown().await?;
    info!("{} has come to rest", context.name());
    Ok(())
}

/// The tables of the other contexts' aggregates are in other databases.
fn only_own_table(app: App<Postgres>, context: BoundedContext) -> App<Postgres> {
    match context {
        BoundedContext::Ordering => app
            .without_table_check::<Stock>()
            .without_table_check::<Account>(),
        BoundedContext::Inventory => app
            .without_table_check::<Order>()
            .without_table_check::<Account>(),
        BoundedContext::Payment => app
            .without_table_check::<Order>()
            .without_table_check::<Stock>(),
    }
}
