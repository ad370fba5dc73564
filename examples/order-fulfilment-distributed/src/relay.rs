//! The relay of all three services, in a process that has no handler and raises no event.

use std::time::Duration;

use anyhow::Context;
use futures_util::future::{join_all, select_all};
use order_fulfilment::BoundedContext;
use order_fulfilment::inventory::Stock;
use order_fulfilment::ordering::Order;
use order_fulfilment::payment::Account;
use outbox_runtime::app::{App, AppError, RunningApp};
use outbox_runtime::backoff::Backoff;
use outbox_runtime::prelude::*;
use sqlx::Postgres;
use tokio::time::sleep;
use tracing::info;

use crate::args::RelayOptions;
use crate::broker::Opened;
use crate::database::Server;
use crate::process::{DEADLINE, Row, Shutdown, tell_health};

/// To each of the databases.
const CONNECTIONS: u32 = 4;
const LOOK_EVERY: Duration = Duration::from_millis(200);

/// The relay of one service.
struct Part {
    context: BoundedContext,
    row: Row,
    app: RunningApp,
}

/// Runs it until the signal.
pub(crate) async fn run(
    server: &Server,
    broker: Opened,
    options: &RelayOptions,
    mut shutdown: Shutdown,
) -> anyhow::Result<()> {
    let parts = tokio::select! {
        () = shutdown.requested() => return Ok(()),
        parts = start(server, &broker, options) => parts?,
    };
    info!("the relay has started; its broker is {}", broker.place);
    let told = parts.iter().map(|part| {
        let name = format!("the relay of {}", part.context.name());
        Box::pin(async move { tell_health(&name, part.app.health()).await })
    });
    tokio::select! {
        () = shutdown.requested() => {}
        _ = join_all(parts.iter().map(|part| part.row.keep(&part.app))) => {}
        _ = select_all(told) => {}
    }
    let ends = join_all(parts.into_iter().map(|part| part.app.shutdown())).await;
    ends.into_iter().collect::<Result<(), AppError>>()?;
    info!("the relay has come to rest");
    Ok(())
}

async fn start(
    server: &Server,
    broker: &Opened,
    options: &RelayOptions,
) -> anyhow::Result<Vec<Part>> {
    let mut outboxes = Vec::new();
    for context in BoundedContext::ALL {
        outboxes.push((context, server.open(context, CONNECTIONS).await?));
    }
    for (context, outbox) in &outboxes {
        wait_for_subscriber(outbox, *context, &broker.place).await?;
    }
    let mut parts = Vec::new();
    for (context, outbox) in outboxes {
        let row = Row::insert(outbox.pool().clone(), "relay", &broker.place).await?;
        let relaying = outbox_runtime::relay::RelayOptions::default()
            .lease(options.lease)
            .backoff(Backoff::new(
                Duration::from_millis(100),
                Duration::from_secs(2),
            ));
        // ANCHOR: app
        let app = App::new(outbox)
            .publisher(broker.broker.clone())
            .relay_options(relaying)
            .without_consumers()
            // It moves messages as they are and knows no aggregate.
            .without_table_check::<Order>()
            .without_table_check::<Stock>()
            .without_table_check::<Account>()
            .shutdown_deadline(DEADLINE)
            .start()
            .await?;
        // ANCHOR_END: app
        parts.push(Part { context, row, app });
    }
    Ok(parts)
}

/// Waits until a service has subscribed once at this broker: RabbitMQ keeps a message for those who
/// have a queue already, and for nobody who comes later.
async fn wait_for_subscriber(
    outbox: &Outbox<Postgres>,
    context: BoundedContext,
    broker: &str,
) -> anyhow::Result<()> {
    let mut told = false;
    loop {
        let is_there: bool = sqlx::query_scalar(
            "SELECT EXISTS (SELECT FROM fulfilment_process WHERE name = $1 AND broker = $2 AND subscribed)",
        )
        .bind(context.name())
        .bind(broker)
        .fetch_one(outbox.pool())
        .await
        .context("the relay can't see whether the services have subscribed")?;
        if is_there {
            return Ok(());
        }
        if !told {
            info!("the relay waits until {} has subscribed", context.name());
            told = true;
        }
        sleep(LOOK_EVERY).await;
    }
}
