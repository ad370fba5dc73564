//! The business: an order is paid, what is paid is shipped, and ordering hears of it.

use outbox_runtime::Error;
use outbox_runtime::prelude::*;
use sqlx::Sqlite;

typed_id! {
    /// What an order is known by in all services.
    pub(crate) struct OrderId(String);
}

#[domain_event(version = 1, name = "orders.order-placed")]
pub(crate) struct OrderPlaced {
    order_id: OrderId,
}

#[domain_event(version = 1, name = "payment.payment-captured")]
pub(crate) struct PaymentCaptured {
    order_id: OrderId,
}

#[domain_event(version = 1, name = "shipping.parcel-sent")]
pub(crate) struct ParcelSent {
    order_id: OrderId,
}

#[aggregate(table = "orders", events(OrderPlaced))]
pub(crate) struct Order {
    id: OrderId,
    sent: bool,
    root: AggregateRoot,
}

#[aggregate(table = "payments", events(PaymentCaptured))]
pub(crate) struct Payment {
    #[aggregate(id)]
    order_id: OrderId,
    root: AggregateRoot,
}

#[aggregate(table = "parcels", events(ParcelSent))]
pub(crate) struct Parcel {
    #[aggregate(id)]
    order_id: OrderId,
    root: AggregateRoot,
}

/// A service: its name, the event that it waits for, and its table.
pub(crate) struct Service {
    pub(crate) name: &'static str,
    pub(crate) hears: &'static str,
    pub(crate) table: &'static str,
}

pub(crate) const SERVICES: [Service; 3] = [
    Service {
        name: "orders",
        hears: ParcelSent::NAME,
        table: "CREATE TABLE orders (id TEXT PRIMARY KEY, sent BOOLEAN NOT NULL, version INTEGER NOT NULL)",
    },
    Service {
        name: "payment",
        hears: OrderPlaced::NAME,
        table: "CREATE TABLE payments (order_id TEXT PRIMARY KEY, version INTEGER NOT NULL)",
    },
    Service {
        name: "shipping",
        hears: PaymentCaptured::NAME,
        table: "CREATE TABLE parcels (order_id TEXT PRIMARY KEY, version INTEGER NOT NULL)",
    },
];

/// What the web handler of a shop would do, in the span of the request.
#[tracing::instrument(name = "POST /orders", skip_all, fields(otel.kind = "server"))]
pub(crate) async fn place_order(outbox: &Outbox<Sqlite>, id: OrderId) -> Result<(), Error> {
    let mut uow = outbox.begin(MessageContext::new()).await?;
    let mut order = Order {
        id: id.clone(),
        sent: false,
        root: AggregateRoot::new(),
    };
    order.raise(OrderPlaced { order_id: id });
    uow.add(&mut order).await?;
    uow.commit().await
}

pub(crate) async fn is_sent(outbox: &Outbox<Sqlite>, id: &OrderId) -> Result<bool, Error> {
    let mut uow = outbox.begin(MessageContext::new()).await?;
    Ok(uow.get::<Order>(id).await?.sent)
}

#[idempotent_handler(consumer = "payment.capture", key = "{event.order_id}:v1")]
async fn capture(
    event: Envelope<OrderPlaced>,
    uow: &mut UnitOfWork<'_, Sqlite>,
) -> Result<(), Error> {
    let order_id = event.order_id.clone();
    let mut payment = Payment {
        order_id: order_id.clone(),
        root: AggregateRoot::new(),
    };
    payment.raise(PaymentCaptured { order_id });
    uow.add(&mut payment).await
}

#[idempotent_handler(consumer = "shipping.send-parcel", key = "{event.order_id}:v1")]
async fn send_parcel(
    event: Envelope<PaymentCaptured>,
    uow: &mut UnitOfWork<'_, Sqlite>,
) -> Result<(), Error> {
    let order_id = event.order_id.clone();
    let mut parcel = Parcel {
        order_id: order_id.clone(),
        root: AggregateRoot::new(),
    };
    parcel.raise(ParcelSent { order_id });
    uow.add(&mut parcel).await
}

#[idempotent_handler(consumer = "orders.note-parcel", key = "{event.order_id}:v1")]
async fn note_parcel(
    event: Envelope<ParcelSent>,
    uow: &mut UnitOfWork<'_, Sqlite>,
) -> Result<(), Error> {
    let mut order = uow.get::<Order>(&event.order_id).await?;
    order.sent = true;
    uow.save(&mut order).await
}
