use outbox_runtime::prelude::*;

use sqlx::Sqlite;

#[domain_event(version = 1)]
pub struct OrderPaid {
    pub order_id: i64,
}

#[derive(Debug, thiserror::Error)]
#[error("failed")]
pub struct Failed;

#[idempotent_handler(key = "{message_id}", versions = "1..=2")]
async fn ship(_event: Envelope<OrderPaid>, _uow: &mut UnitOfWork<'_, Sqlite>) -> Result<(), Failed> {
    Ok(())
}

#[idempotent_handler(key = "{message_id}", versions = OLD..=NEW)]
async fn second(_event: Envelope<OrderPaid>, _uow: &mut UnitOfWork<'_, Sqlite>) -> Result<(), Failed> {
    Ok(())
}

fn main() {}
