//! A web service that places orders: the unit of work inside an axum handler.
//!
//! `POST /orders` stores an order and its event in one transaction and answers at once. A handler
//! of the same program, which `main` runs beside the web server, reacts to the event.

pub mod operations;

use axum::extract::{Path, State as AppState};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use outbox_runtime::Error;
use outbox_runtime::prelude::*;
use serde::{Deserialize, Serialize};
use sqlx::Sqlite;

typed_id! {
    /// What an order is known by.
    pub struct OrderId(String);
}

/// An order came in.
#[domain_event(version = 1, name = "shop.order-placed")]
pub struct OrderPlaced {
    /// Which.
    pub order_id: OrderId,
    /// Its worth.
    pub total_cents: i64,
}

/// An order.
#[aggregate(table = "orders", events(OrderPlaced))]
pub struct Order {
    id: OrderId,
    total_cents: i64,
    acknowledged: bool,
    root: AggregateRoot,
}

impl Order {
    fn place(id: OrderId, total_cents: i64) -> Self {
        let mut order = Self {
            id: id.clone(),
            total_cents,
            acknowledged: false,
            root: AggregateRoot::new(),
        };
        order.raise(OrderPlaced {
            order_id: id,
            total_cents,
        });
        order
    }
}

/// Stands for whatever follows from an order.
///
/// # Errors
/// What the database says.
#[idempotent_handler(consumer = "shop.acknowledge-order", key = "{event.order_id}:v1")]
pub async fn acknowledge_order(
    event: Envelope<OrderPlaced>,
    uow: &mut UnitOfWork<'_, Sqlite>,
) -> Result<(), Error> {
    let mut order = uow.get::<Order>(&event.order_id).await?;
    order.acknowledged = true;
    uow.save(&mut order).await
}

/// The tables of this program; the outbox brings its own.
pub const TABLES: &str = "
    CREATE TABLE IF NOT EXISTS orders (
        id           TEXT    PRIMARY KEY,
        total_cents  INTEGER NOT NULL,
        acknowledged BOOLEAN NOT NULL,
        version      INTEGER NOT NULL
    )
";

// ANCHOR: router
/// The service's routes. The outbox is their state; its clones share everything.
pub fn router(outbox: Outbox<Sqlite>) -> Router {
    Router::new()
        .route("/orders", post(place_order))
        .route("/orders/{id}", get(show_order))
        .with_state(outbox)
}
// ANCHOR_END: router

/// What a client sends.
#[derive(Debug, Deserialize)]
pub struct NewOrder {
    id: String,
    total_cents: i64,
}

// ANCHOR: handler
async fn place_order(
    AppState(outbox): AppState<Outbox<Sqlite>>,
    Json(new): Json<NewOrder>,
) -> Result<StatusCode, ApiError> {
    let mut order = Order::place(OrderId::from(new.id), new.total_cents);
    let context = MessageContext::new().correlation_id(order.id.to_string());
    let mut uow = outbox.begin(context).await?;
    uow.add(&mut order).await?;
    uow.commit().await?;
    Ok(StatusCode::CREATED)
}

/// A failure as this service's clients see it.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
struct ApiError(#[from] Error);

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        // The error's own words are for the service's log.
        let answer = match &self.0 {
            Error::AlreadyExists { .. } | Error::VersionConflict { .. } => {
                (StatusCode::CONFLICT, "somebody was faster")
            }
            Error::NotFound { .. } => (StatusCode::NOT_FOUND, "no such order"),
            Error::Context(_) => (StatusCode::UNPROCESSABLE_ENTITY, "the id can't be used"),
            other if other.is_transient() => {
                (StatusCode::SERVICE_UNAVAILABLE, "try again in a moment")
            }
            _ => (StatusCode::INTERNAL_SERVER_ERROR, "something went wrong"),
        };
        answer.into_response()
    }
}
// ANCHOR_END: handler

/// An order as clients see it.
#[derive(Debug, Serialize)]
struct ShownOrder {
    id: String,
    total_cents: i64,
    acknowledged: bool,
}

async fn show_order(
    AppState(outbox): AppState<Outbox<Sqlite>>,
    Path(id): Path<String>,
) -> Result<Json<ShownOrder>, ApiError> {
    let mut uow = outbox.begin(MessageContext::new()).await?;
    let order = uow.get::<Order>(&OrderId::from(id)).await?;
    Ok(Json(ShownOrder {
        id: order.id.to_string(),
        total_cents: order.total_cents,
        acknowledged: order.acknowledged,
    }))
}
