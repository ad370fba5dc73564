use std::sync::Arc;

use async_trait::async_trait;
use outbox_runtime::Message;
use outbox_runtime::broker::{Broker, PublishError, Publisher};
use outbox_tests::faults::{Sabotage, Way, Wire};

/// The way to the broker, honest unless a promise is to be broken.
pub(crate) struct TestPublisher {
    pub(crate) broker: Arc<dyn Broker>,
    pub(crate) wire: Option<Arc<Wire>>,
    pub(crate) sabotage: Option<Sabotage>,
}

#[async_trait]
impl Publisher for TestPublisher {
    async fn publish(&self, messages: &[Message]) -> Vec<Result<(), PublishError>> {
        if let Some(wire) = &self.wire {
            wire.note(Way::Out, messages);
        }
        match self.sabotage {
            Some(Sabotage::DropsMessages) => {
                let kept: Vec<_> = messages
                    .iter()
                    .filter(|_| fastrand::u32(0..30) != 0)
                    .cloned()
                    .collect();
                all_or_none(messages, self.broker.publish(&kept).await)
            }
            Some(Sabotage::SwapsMessages) => {
                let mut swapped = messages.to_vec();
                swap_neighbours(&mut swapped);
                all_or_none(messages, self.broker.publish(&swapped).await)
            }
            Some(Sabotage::ConfirmsOnHope) => {
                self.broker.publish(messages).await;
                messages.iter().map(|_| Ok(())).collect()
            }
            _ => self.broker.publish(messages).await,
        }
    }
}

/// What is said of messages when others were sent in their place.
fn all_or_none(
    messages: &[Message],
    sent: Vec<Result<(), PublishError>>,
) -> Vec<Result<(), PublishError>> {
    let all = sent.iter().all(Result::is_ok);
    let answer = |_| match all {
        true => Ok(()),
        false => Err(PublishError::transient("not sent")),
    };
    messages.iter().map(answer).collect()
}

/// Exchanges the first two messages of one aggregate that stand next to each other.
fn swap_neighbours(messages: &mut [Message]) {
    let key = |message: &Message| message.metadata.ordering_key();
    let pair = messages
        .windows(2)
        .position(|pair| key(&pair[0]) == key(&pair[1]));
    if let Some(first) = pair {
        messages.swap(first, first + 1);
    }
}
