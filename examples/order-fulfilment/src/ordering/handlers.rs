use outbox_runtime::prelude::*;

use super::order::{Answer, Order, OrderError};
use crate::inventory::{StockRejected, StockReserved};
use crate::payment::{PaymentCaptured, PaymentDeclined};
use crate::{OrderId, ShopDb};

/// An answer could not be written into its order.
#[derive(Debug, thiserror::Error)]
pub enum HandlingError {
    /// The database failed, or another answer was written at the same time.
    #[error(transparent)]
    Store(#[from] outbox_runtime::Error),
    /// The order said no.
    #[error(transparent)]
    Order(#[from] OrderError),
}

/// Tells the runtime whether trying again can help.
impl Classify for HandlingError {
    fn failure_kind(&self) -> FailureKind {
        match self {
            Self::Store(error) => error.failure_kind(),
            // The domain's no stays a no.
            Self::Order(_) => FailureKind::Permanent,
        }
    }
}

#[idempotent_handler(consumer = "ordering.stock-reserved", key = "{event.order_id}:v1")]
pub async fn on_stock_reserved<DB: ShopDb>(
    event: Envelope<StockReserved>,
    uow: &mut UnitOfWork<'_, DB>,
) -> Result<(), HandlingError> {
    change(uow, &event.order_id, |order| {
        order.stock_answered(Answer::Yes)
    })
    .await
}

#[idempotent_handler(consumer = "ordering.stock-rejected", key = "{event.order_id}:v1")]
pub async fn on_stock_rejected<DB: ShopDb>(
    event: Envelope<StockRejected>,
    uow: &mut UnitOfWork<'_, DB>,
) -> Result<(), HandlingError> {
    change(uow, &event.order_id, |order| {
        order.stock_answered(Answer::No)
    })
    .await
}

#[idempotent_handler(consumer = "ordering.payment-captured", key = "{event.order_id}:v1")]
pub async fn on_payment_captured<DB: ShopDb>(
    event: Envelope<PaymentCaptured>,
    uow: &mut UnitOfWork<'_, DB>,
) -> Result<(), HandlingError> {
    change(uow, &event.order_id, |order| {
        order.payment_answered(Answer::Yes)
    })
    .await
}

#[idempotent_handler(consumer = "ordering.payment-declined", key = "{event.order_id}:v1")]
pub async fn on_payment_declined<DB: ShopDb>(
    event: Envelope<PaymentDeclined>,
    uow: &mut UnitOfWork<'_, DB>,
) -> Result<(), HandlingError> {
    change(uow, &event.order_id, |order| {
        order.payment_answered(Answer::No)
    })
    .await
}

async fn change<DB: ShopDb>(
    uow: &mut UnitOfWork<'_, DB>,
    id: &OrderId,
    change: impl FnOnce(&mut Order) -> Result<(), OrderError>,
) -> Result<(), HandlingError> {
    let mut order = uow.get::<Order>(id).await?;
    change(&mut order)?;
    uow.save(&mut order).await?;
    Ok(())
}
