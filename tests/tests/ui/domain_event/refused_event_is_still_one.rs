use outbox_runtime::prelude::*;

// One error alone: what uses the event compiles.
#[domain_event(version = 0)]
pub struct OrderPaid {
    pub order_id: i64,
}

#[aggregate(events(OrderPaid))]
pub struct Order {
    id: i64,
    root: AggregateRoot,
}

impl Order {
    pub fn pay(&mut self) -> u32 {
        self.raise(OrderPaid { order_id: self.id });
        OrderPaid::VERSION
    }
}

#[idempotent_handler(key = "{event.order_id}")]
pub async fn ship(
    _event: Envelope<OrderPaid>,
    _uow: &mut UnitOfWork<'_, sqlx::Sqlite>,
) -> Result<(), std::fmt::Error> {
    Ok(())
}

fn main() {}
