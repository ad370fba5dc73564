use outbox_runtime::prelude::*;

use sqlx::Sqlite;

#[domain_event(version = 1)]
pub struct OrderPaid {
    pub order_id: i64,
}

#[derive(Debug, thiserror::Error)]
#[error("failed")]
pub struct Failed;

#[idempotent_handler(key = "{message_id}")]
async fn owned(_event: Envelope<OrderPaid>, _uow: UnitOfWork<'_, Sqlite>) -> Result<(), Failed> {
    Ok(())
}

#[idempotent_handler(key = "{message_id}")]
async fn shared(_event: Envelope<OrderPaid>, _uow: &UnitOfWork<'_, Sqlite>) -> Result<(), Failed> {
    Ok(())
}

#[idempotent_handler(key = "{message_id}")]
async fn pool(_event: Envelope<OrderPaid>, _pool: sqlx::Pool<Sqlite>) -> Result<(), Failed> {
    Ok(())
}

fn main() {}
