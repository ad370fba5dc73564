use std::sync::Arc;

use async_trait::async_trait;
use outbox_runtime::broker::{
    Acknowledge, Broker, BrokerError, Deliveries, Delivery, Sharing, Subscriber, Subscription,
};
use outbox_tests::faults::{Sabotage, Way, Wire};

/// The way from the broker, honest unless a promise is to be broken.
pub(crate) struct TestSubscriber {
    pub(crate) broker: Arc<dyn Broker>,
    pub(crate) wire: Option<Arc<Wire>>,
    pub(crate) sabotage: Option<Sabotage>,
}

#[async_trait]
impl Subscriber for TestSubscriber {
    fn sharing(&self) -> Sharing {
        self.broker.sharing()
    }

    async fn subscribe(
        &self,
        subscription: Subscription,
    ) -> Result<Box<dyn Deliveries>, BrokerError> {
        Ok(Box::new(Noted {
            deliveries: self.broker.subscribe(subscription).await?,
            wire: self.wire.clone(),
            is_hasty: self.sabotage == Some(Sabotage::AcksBeforeCommit),
        }))
    }
}

/// Deliveries that are written down as they come.
struct Noted {
    deliveries: Box<dyn Deliveries>,
    wire: Option<Arc<Wire>>,
    is_hasty: bool,
}

#[async_trait]
impl Deliveries for Noted {
    async fn next(&mut self) -> Result<Option<Delivery>, BrokerError> {
        let Some(delivery) = self.deliveries.next().await? else {
            return Ok(None);
        };
        if let Some(wire) = &self.wire {
            wire.note(Way::In, std::slice::from_ref(&delivery.message));
        }
        if !self.is_hasty {
            return Ok(Some(delivery));
        }
        let attempt = delivery.attempt;
        let (message, answer) = delivery.into_parts();
        // In a task of its own: whoever drops this call does not take it back.
        tokio::spawn(answer.ack());
        Ok(Some(Delivery::new(message, attempt, Answered)))
    }
}

/// Says nothing: all is said.
struct Answered;

#[async_trait]
impl Acknowledge for Answered {
    async fn ack(self: Box<Self>) -> Result<(), BrokerError> {
        Ok(())
    }

    async fn nack(self: Box<Self>) -> Result<(), BrokerError> {
        Ok(())
    }
}
