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
async fn nothing(_event: Envelope<OrderPaid>, _uow: &mut UnitOfWork<'_, Sqlite>) {}

#[idempotent_handler(key = "{message_id}")]
async fn number(_event: Envelope<OrderPaid>, _uow: &mut UnitOfWork<'_, Sqlite>) -> i64 {
    1
}

#[idempotent_handler(key = "{message_id}")]
async fn value(_event: Envelope<OrderPaid>, _uow: &mut UnitOfWork<'_, Sqlite>) -> Result<i64, Failed> {
    Ok(1)
}

fn main() {}
