use outbox_runtime::prelude::*;

use sqlx::Sqlite;

#[domain_event(version = 1)]
pub struct OrderPaid {
    pub order_id: i64,
}

pub struct Oops;

#[idempotent_handler(key = "{message_id}")]
async fn ship(_event: Envelope<OrderPaid>, _uow: &mut UnitOfWork<'_, Sqlite>) -> Result<(), Oops> {
    Err(Oops)
}

fn main() {}
