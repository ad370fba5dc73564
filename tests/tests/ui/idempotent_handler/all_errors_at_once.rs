use outbox_runtime::prelude::*;

use sqlx::Sqlite;

#[domain_event(version = 1)]
pub struct OrderPaid {
    pub order_id: i64,
}

#[derive(Clone)]
pub struct Limits;

#[idempotent_handler(kye = "{message_id}", consumer = "", versions = 0..=1)]
fn ship<T>(_event: OrderPaid, _uow: UnitOfWork<'_, Sqlite>, _limits: Limits) {}

fn main() {}
