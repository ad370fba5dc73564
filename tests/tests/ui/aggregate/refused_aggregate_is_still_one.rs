use outbox_runtime::prelude::*;

// One error alone: what uses the aggregate compiles.
#[domain_event(version = 1)]
pub struct OrderPaid;

#[aggregate(tabel = "orders", events(OrderPaid))]
pub struct Order {
    #[aggregate(id)]
    number: i64,
    root: AggregateRoot,
}

impl Order {
    pub fn pay(&mut self) {
        self.raise(OrderPaid);
    }
}

pub async fn pay<DB: Stores<Order>>(uow: &mut UnitOfWork<'_, DB>) {
    let mut order = uow.get::<Order>(&1).await.unwrap();
    order.pay();
    uow.save(&mut order).await.unwrap();
}

pub async fn pay_on_sqlite(uow: &mut UnitOfWork<'_, sqlx::Sqlite>) {
    pay(uow).await;
}

fn main() {}
