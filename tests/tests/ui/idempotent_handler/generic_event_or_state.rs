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
async fn event<E: DomainEvent>(_event: Envelope<E>, _uow: &mut UnitOfWork<'_, Sqlite>) -> Result<(), Failed> {
    Ok(())
}

#[idempotent_handler(key = "{message_id}")]
async fn state<DB: Backend>(
    _event: Envelope<OrderPaid>,
    _uow: &mut UnitOfWork<'_, DB>,
    State(_pool): State<sqlx::Pool<DB>>,
) -> Result<(), Failed> {
    Ok(())
}

fn main() {}
