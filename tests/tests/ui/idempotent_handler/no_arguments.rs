use outbox_runtime::prelude::*;

#[domain_event(version = 1)]
pub struct OrderPaid {
    pub order_id: i64,
}

#[derive(Debug, thiserror::Error)]
#[error("failed")]
pub struct Failed;

#[idempotent_handler(key = "{message_id}")]
async fn none() -> Result<(), Failed> {
    Ok(())
}

#[idempotent_handler(key = "{message_id}")]
async fn one(_event: Envelope<OrderPaid>) -> Result<(), Failed> {
    Ok(())
}

fn main() {}
