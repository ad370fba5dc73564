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
async fn ship(_uow: &mut UnitOfWork<'_, Sqlite>, _event: Envelope<OrderPaid>) -> Result<(), Failed> {
    Ok(())
}

fn main() {}
