//! Places orders, each in a unit of work of its own.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use anyhow::Context;
use outbox_runtime::Error;
use outbox_runtime::prelude::*;

use crate::ShopDb;
use crate::intake::{OrderLine, Refusal};
use crate::ordering::Order;

/// How far the placing is, readable while it goes on.
#[derive(Debug, Default)]
pub struct Placing {
    placed: AtomicU64,
    already_placed: AtomicU64,
    done: AtomicBool,
}

impl Placing {
    /// How many orders were placed.
    pub fn placed(&self) -> u64 {
        self.placed.load(Ordering::Relaxed)
    }

    /// How many were there already.
    pub fn already_placed(&self) -> u64 {
        self.already_placed.load(Ordering::Relaxed)
    }

    /// Whether every line was dealt with.
    pub fn is_done(&self) -> bool {
        self.done.load(Ordering::Acquire)
    }

    /// Places each order that is not there yet, so that a run that was cut off can be repeated.
    ///
    /// It returns the lines that contradict an order which was placed in an earlier run.
    pub async fn place_all<DB: ShopDb>(
        &self,
        outbox: &Outbox<DB>,
        lines: &[OrderLine],
    ) -> anyhow::Result<Vec<Refusal>> {
        let mut refused = Vec::new();
        for line in lines {
            let outcome = place(outbox, line).await.with_context(|| {
                format!("the order of line {} can't be placed; run again with the same arguments, nothing is placed twice", line.line)
            })?;
            match outcome {
                Outcome::Placed => {
                    self.placed.fetch_add(1, Ordering::Relaxed);
                }
                Outcome::AlreadyPlaced => {
                    self.already_placed.fetch_add(1, Ordering::Relaxed);
                }
                Outcome::Contradiction => refused.push(Refusal {
                    line: line.line,
                    column: "order_id",
                    reason: format!(
                        "the order {} was placed before and says something else",
                        line.order_id
                    ),
                }),
            }
        }
        self.done.store(true, Ordering::Release);
        Ok(refused)
    }
}

enum Outcome {
    Placed,
    AlreadyPlaced,
    Contradiction,
}

async fn place<DB: ShopDb>(outbox: &Outbox<DB>, line: &OrderLine) -> anyhow::Result<Outcome> {
    let mut order = Order::place(
        line.order_id.clone().into(),
        line.customer_id.clone().into(),
        line.sku.clone().into(),
        line.quantity,
        line.unit_price_cents,
    )?;
    // All messages of this order's saga will carry its id as their correlation.
    let context = MessageContext::new().correlation_id(line.order_id.as_str());
    let mut uow = outbox.begin(context).await?;
    if let Some(there) = uow.find::<Order>(order.id()).await? {
        return Ok(match there.is_same_as(&order) {
            true => Outcome::AlreadyPlaced,
            false => Outcome::Contradiction,
        });
    }
    uow.add(&mut order).await?;
    match uow.commit().await {
        Ok(()) => Ok(Outcome::Placed),
        // Another run of this program, at the same time, was faster: look again.
        Err(Error::AlreadyExists { .. }) => Box::pin(place(outbox, line)).await,
        Err(error) => Err(error.into()),
    }
}
