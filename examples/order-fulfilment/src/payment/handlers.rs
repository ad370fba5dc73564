use outbox_runtime::prelude::*;

use super::account::Account;
use crate::ordering::{OrderCancelled, OrderPlaced};
use crate::{Limits, ShopDb};

/// Captures the money as soon as an order is placed.
///
/// One customer's orders meet on the account, so its row is locked, as a shelf's is in inventory.
#[idempotent_handler(consumer = "payment.capture", key = "{event.order_id}:v1")]
pub async fn capture<DB: ShopDb>(
    event: Envelope<OrderPlaced>,
    uow: &mut UnitOfWork<'_, DB>,
    State(limits): State<Limits>,
) -> Result<(), outbox_runtime::Error> {
    match uow.find_for_update::<Account>(&event.customer_id).await? {
        Some(mut account) => {
            account.capture(event.order_id.clone(), event.total_cents);
            uow.save(&mut account).await?;
        }
        None => {
            let mut account = Account::open(event.customer_id.clone(), limits.credit_cents);
            account.capture(event.order_id.clone(), event.total_cents);
            uow.add(&mut account).await?;
        }
    }
    Ok(())
}

/// Gives the money back when goods were missing: the compensation of [`capture`].
#[idempotent_handler(consumer = "payment.refund", key = "{event.order_id}:v1")]
pub async fn refund<DB: ShopDb>(
    event: Envelope<OrderCancelled>,
    uow: &mut UnitOfWork<'_, DB>,
) -> Result<(), outbox_runtime::Error> {
    if !event.payment_captured {
        return Ok(());
    }
    let mut account = uow.get_for_update::<Account>(&event.customer_id).await?;
    account.refund(event.order_id.clone(), event.total_cents);
    uow.save(&mut account).await?;
    Ok(())
}
