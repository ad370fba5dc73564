use outbox_runtime::prelude::*;

use sqlx::Sqlite;

#[domain_event(version = 1)]
pub struct OrderPaid {
    pub order_id: i64,
}

#[derive(Debug, thiserror::Error)]
#[error("failed")]
pub struct Failed;

pub struct Shipping;

impl Shipping {
    #[idempotent_handler(key = "{message_id}")]
    async fn ship(
        &self,
        _event: Envelope<OrderPaid>,
        _uow: &mut UnitOfWork<'_, Sqlite>,
    ) -> Result<(), Failed> {
        Ok(())
    }
}

fn main() {}
