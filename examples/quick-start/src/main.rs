//! The book's quick start: an order is placed, billing invoices it, and ordering hears of it.

// ANCHOR: imports
use std::time::Duration;

use outbox_runtime::Error;
use outbox_runtime::prelude::*;
use sqlx::Sqlite;
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePool};
// ANCHOR_END: imports

// ANCHOR: events
typed_id! {
    /// What an order is known by.
    struct OrderId(String);
}

/// Ordering took an order.
#[domain_event(version = 1, name = "ordering.order-placed")]
struct OrderPlaced {
    order_id: OrderId,
    total_cents: i64,
}

/// Billing wrote an invoice.
#[domain_event(version = 1, name = "billing.invoice-issued")]
struct InvoiceIssued {
    order_id: OrderId,
}
// ANCHOR_END: events

// ANCHOR: order
#[aggregate(table = "orders", events(OrderPlaced))]
struct Order {
    id: OrderId,
    total_cents: i64,
    invoiced: bool,
    root: AggregateRoot, // its version, and the events that it raised
}

impl Order {
    fn place(id: OrderId, total_cents: i64) -> Self {
        let mut order = Self {
            id: id.clone(),
            total_cents,
            invoiced: false,
            root: AggregateRoot::new(),
        };
        order.raise(OrderPlaced {
            order_id: id,
            total_cents,
        });
        order
    }

    fn mark_invoiced(&mut self) {
        self.invoiced = true;
    }
}
// ANCHOR_END: order

// ANCHOR: invoice
#[aggregate(table = "invoices", events(InvoiceIssued))]
struct Invoice {
    #[aggregate(id)]
    order_id: OrderId,
    amount_cents: i64,
    root: AggregateRoot,
}

impl Invoice {
    fn issue(order_id: OrderId, amount_cents: i64) -> Self {
        let mut invoice = Self {
            order_id: order_id.clone(),
            amount_cents,
            root: AggregateRoot::new(),
        };
        invoice.raise(InvoiceIssued { order_id });
        invoice
    }
}
// ANCHOR_END: invoice

// ANCHOR: place
async fn place_order(outbox: &Outbox<Sqlite>, id: &OrderId, total_cents: i64) -> Result<(), Error> {
    let context = MessageContext::new().correlation_id(id.to_string());
    let mut uow = outbox.begin(context).await?;
    if uow.find::<Order>(id).await?.is_some() {
        println!("{id} was placed by an earlier run");
        return Ok(());
    }
    let mut order = Order::place(id.clone(), total_cents);
    uow.add(&mut order).await?;
    uow.commit().await?; // the order and its event, or neither
    println!("{id} is placed");
    Ok(())
}
// ANCHOR_END: place

// ANCHOR: handlers
#[idempotent_handler(consumer = "billing.issue-invoice", key = "{event.order_id}:v1")]
async fn issue_invoice(
    event: Envelope<OrderPlaced>,
    uow: &mut UnitOfWork<'_, Sqlite>,
) -> Result<(), Error> {
    let mut invoice = Invoice::issue(event.order_id.clone(), event.total_cents);
    uow.add(&mut invoice).await
}

#[idempotent_handler(consumer = "ordering.note-invoice", key = "{event.order_id}:v1")]
async fn note_invoice(
    event: Envelope<InvoiceIssued>,
    uow: &mut UnitOfWork<'_, Sqlite>,
) -> Result<(), Error> {
    let mut order = uow.get::<Order>(&event.order_id).await?;
    order.mark_invoiced();
    uow.save(&mut order).await
}
// ANCHOR_END: handlers

// ANCHOR: main
const TABLES: &str = "
    CREATE TABLE IF NOT EXISTS orders (
        id          TEXT    PRIMARY KEY,
        total_cents INTEGER NOT NULL,
        invoiced    BOOLEAN NOT NULL,
        version     INTEGER NOT NULL
    );
    CREATE TABLE IF NOT EXISTS invoices (
        order_id     TEXT    PRIMARY KEY,
        amount_cents INTEGER NOT NULL,
        version      INTEGER NOT NULL
    );
";

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let options = SqliteConnectOptions::new()
        .filename("quick-start.db")
        .create_if_missing(true)
        .journal_mode(SqliteJournalMode::Wal);
    let pool = SqlitePool::connect_with(options).await?;
    sqlx::raw_sql(TABLES).execute(&pool).await?;

    let outbox = Outbox::new("shop", pool);
    outbox.migrate().await?;

    let id = std::env::args().nth(1).unwrap_or("order-1".to_owned());
    let id = OrderId::from(id);
    place_order(&outbox, &id, 12_000).await?;

    // A service runs until it is told to stop; this program ends once the order is invoiced.
    let done = until_invoiced(outbox.clone(), id);
    App::new(outbox)
        .broker(InProcessBroker::new())
        .run_until(done)
        .await?;
    Ok(())
}

async fn until_invoiced(outbox: Outbox<Sqlite>, id: OrderId) {
    while !is_invoiced(&outbox, &id).await.unwrap_or(false) {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    println!("{id} is invoiced");
}

async fn is_invoiced(outbox: &Outbox<Sqlite>, id: &OrderId) -> Result<bool, Error> {
    let mut uow = outbox.begin(MessageContext::new()).await?;
    Ok(uow.get::<Order>(id).await?.invoiced)
}
// ANCHOR_END: main
