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
async fn second<DB: Backend, T>(_event: Envelope<OrderPaid>, _uow: &mut UnitOfWork<'_, DB>) -> Result<(), Failed> {
    Ok(())
}

#[idempotent_handler(key = "{message_id}")]
async fn lifetime<'a>(_event: Envelope<OrderPaid>, _uow: &mut UnitOfWork<'a, Sqlite>) -> Result<(), Failed> {
    Ok(())
}

#[idempotent_handler(key = "{message_id}")]
async fn constant<const N: usize>(_event: Envelope<OrderPaid>, _uow: &mut UnitOfWork<'_, Sqlite>) -> Result<(), Failed> {
    Ok(())
}

#[idempotent_handler(key = "{message_id}")]
async fn unused<DB: Backend>(_event: Envelope<OrderPaid>, _uow: &mut UnitOfWork<'_, Sqlite>) -> Result<(), Failed> {
    Ok(())
}

fn main() {}
