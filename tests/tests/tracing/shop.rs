#![allow(dead_code)]

use std::sync::{Arc, Mutex};
use std::time::Duration;

use outbox_runtime::app::{App, RunningApp};
use outbox_runtime::backoff::Backoff;
use outbox_runtime::inbox::ConsumerOptions;
use outbox_runtime::prelude::*;
use outbox_runtime::relay::RelayOptions;
use outbox_runtime::retry::RetryPolicy;
use outbox_tests::{Fixture, TestDatabase, bank, quick};

typed_id! { pub(crate) struct OrderId(String); }

#[domain_event(version = 1, name = "order.placed")]
#[derive(Debug, Clone)]
pub(crate) struct OrderPlaced {
    pub(crate) order: OrderId,
    pub(crate) note: String,
}

#[domain_event(version = 1, name = "invoice.issued")]
pub(crate) struct InvoiceIssued {
    pub(crate) order: OrderId,
}

#[aggregate(table = "orders", events(OrderPlaced))]
pub(crate) struct Order {
    id: OrderId,
    root: AggregateRoot,
}

impl Order {
    pub(crate) fn place(id: &str, note: &str) -> Self {
        let mut order = Self {
            id: OrderId::from(id.to_owned()),
            root: AggregateRoot::new(),
        };
        order.raise(placed(id, note));
        order
    }
}

pub(crate) fn placed(id: &str, note: &str) -> OrderPlaced {
    OrderPlaced {
        order: OrderId::from(id.to_owned()),
        note: note.to_owned(),
    }
}

#[aggregate(table = "invoices", events(InvoiceIssued))]
pub(crate) struct Invoice {
    id: OrderId,
    root: AggregateRoot,
}

/// What the handler is to do, and what it saw.
#[derive(Clone, Default)]
pub(crate) struct Billing {
    is_failing: Arc<Mutex<Option<Failing>>>,
    attempts: Arc<Mutex<Vec<Attempt>>>,
}

#[derive(Debug, Clone, Copy)]
pub(crate) enum Failing {
    Plainly,
    /// With the payload in the error's text.
    QuotingThePayload,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Attempt {
    pub(crate) metadata: Metadata,
    pub(crate) context: MessageContext,
}

impl Billing {
    pub(crate) fn fail(&self, how: impl Into<Option<Failing>>) {
        *self.is_failing.lock().unwrap() = how.into();
    }

    pub(crate) fn attempts(&self) -> Vec<Attempt> {
        self.attempts.lock().unwrap().clone()
    }
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum BillingError {
    #[error("no paper: {0}")]
    NoPaper(String),
    #[error(transparent)]
    Store(#[from] outbox_runtime::Error),
}

#[idempotent_handler(consumer = "billing.invoice", key = "{message_id}")]
async fn invoice<DB: Stores<Invoice>>(
    event: Envelope<OrderPlaced>,
    uow: &mut UnitOfWork<'_, DB>,
    State(billing): State<Billing>,
) -> Result<(), BillingError> {
    let mut invoice = Invoice {
        id: event.order.clone(),
        root: AggregateRoot::new(),
    };
    let order = event.order.clone();
    invoice.raise(InvoiceIssued { order });
    uow.add(&mut invoice).await?;
    billing.attempts.lock().unwrap().push(Attempt {
        metadata: event.metadata.clone(),
        context: uow.context().clone(),
    });
    let how = *billing.is_failing.lock().unwrap();
    match how {
        None => Ok(()),
        Some(Failing::Plainly) => Err(BillingError::NoPaper("empty".to_owned())),
        Some(Failing::QuotingThePayload) => {
            let payload = event.event.encode().unwrap();
            Err(BillingError::NoPaper(format!("for {payload}")))
        }
    }
}

/// A test database that stores the shop's aggregates.
pub(crate) trait ShopDb: TestDatabase + Stores<Order> + Stores<Invoice> {}

impl<DB: TestDatabase + Stores<Order> + Stores<Invoice>> ShopDb for DB {}

pub(crate) async fn open_shop<DB: ShopDb>(fixture: &Fixture<DB>) {
    for table in ["orders", "invoices"] {
        let columns = "(id text PRIMARY KEY, version bigint NOT NULL)";
        fixture
            .run_sql(&format!("CREATE TABLE {table} {columns}"))
            .await;
    }
}

/// Places an order in a unit of work of that context.
pub(crate) async fn place<DB: ShopDb>(
    fixture: &Fixture<DB>,
    context: MessageContext,
    id: &str,
    note: &str,
) {
    let mut uow = fixture.outbox.begin(context).await.unwrap();
    uow.add(&mut Order::place(id, note)).await.unwrap();
    uow.commit().await.unwrap();
}

/// What is tried again only after the test has said so, by [`make_due`].
pub(crate) fn patient() -> RetryPolicy {
    let hours = Duration::from_secs(360_000);
    RetryPolicy::new()
        .permanent_attempts(9)
        .backoff(Backoff::new(hours, hours))
}

pub(crate) fn relay_options() -> RelayOptions {
    quick().retry(patient())
}

/// An app that handles, and relays by its own broker if it gets one.
pub(crate) fn app<DB: ShopDb>(fixture: &Fixture<DB>, billing: &Billing) -> App<DB> {
    let options = ConsumerOptions::new()
        .retry(patient())
        .poll_interval(Duration::from_millis(50));
    App::new(fixture.outbox.clone())
        .state(billing.clone())
        .without_table_check::<bank::Account>()
        .relay_options(relay_options())
        .consumer_options(options)
}

pub(crate) async fn stop(app: RunningApp) {
    app.shutdown().await.unwrap();
}

/// Makes the heads of a table of parked messages due now.
pub(crate) async fn make_due<DB: TestDatabase>(fixture: &Fixture<DB>, table: &str) {
    let long_ago = if DB::NAME == "SQLite" {
        "0"
    } else {
        "'2000-01-01'"
    };
    fixture
        .run_sql(&format!(
            "UPDATE {table} SET next_attempt_at = {long_ago} WHERE state = 'failing'"
        ))
        .await;
}

/// Waits until the query answers the number; far longer than it ever takes.
pub(crate) async fn eventually<DB: TestDatabase>(fixture: &Fixture<DB>, sql: &str, number: i64) {
    let waiting = async {
        while fixture.number(sql).await != number {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), waiting)
        .await
        .unwrap_or_else(|_| panic!("it did not happen: {sql} = {number}"));
}

/// Waits until the condition holds, as long.
pub(crate) async fn until(condition: impl Fn() -> bool) {
    let waiting = async {
        while !condition() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), waiting)
        .await
        .expect("it did not happen");
}

/// An id that no other test uses, on either database.
pub(crate) fn unique<DB: Backend>(name: &str) -> String {
    format!("{name} on {}", DB::NAME)
}
