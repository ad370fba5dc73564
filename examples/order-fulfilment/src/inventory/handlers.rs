use outbox_runtime::prelude::*;

use super::stock::Stock;
use crate::ordering::{OrderCancelled, OrderPlaced};
use crate::{Limits, ShopDb};

/// Reserves goods as soon as an order is placed.
///
/// Orders for one article meet on its shelf, so the row is locked: they queue up for it instead of
/// running into version conflicts. Two first orders at once may both open the shelf; the database
/// lets one of them through and the other attempt is made again.
#[idempotent_handler(consumer = "inventory.reserve", key = "{event.order_id}:v1")]
pub async fn reserve<DB: ShopDb>(
    event: Envelope<OrderPlaced>,
    uow: &mut UnitOfWork<'_, DB>,
    State(limits): State<Limits>,
) -> Result<(), outbox_runtime::Error> {
    match uow.find_for_update::<Stock>(&event.sku).await? {
        Some(mut stock) => {
            stock.reserve(event.order_id.clone(), event.quantity);
            uow.save(&mut stock).await?;
        }
        None => {
            let mut stock = Stock::open(event.sku.clone(), limits.opening_stock);
            stock.reserve(event.order_id.clone(), event.quantity);
            uow.add(&mut stock).await?;
        }
    }
    Ok(())
}

/// Puts goods back when payment failed: the compensation of [`reserve`].
#[idempotent_handler(consumer = "inventory.release", key = "{event.order_id}:v1")]
pub async fn release<DB: ShopDb>(
    event: Envelope<OrderCancelled>,
    uow: &mut UnitOfWork<'_, DB>,
) -> Result<(), outbox_runtime::Error> {
    if !event.stock_reserved {
        return Ok(());
    }
    let mut stock = uow.get_for_update::<Stock>(&event.sku).await?;
    stock.release(event.order_id.clone(), event.quantity);
    uow.save(&mut stock).await?;
    Ok(())
}
