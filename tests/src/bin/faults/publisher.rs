use async_trait::async_trait;
use outbox_runtime::Message;
use outbox_runtime::broker::{PublishError, Publisher};
use outbox_tests::faults::{BrokerClient, Sabotage};

/// The way to the broker, honest unless a promise is to be broken.
pub(crate) struct TestPublisher {
    client: BrokerClient,
    sabotage: Option<Sabotage>,
}

impl TestPublisher {
    pub(crate) fn new(client: BrokerClient, sabotage: Option<Sabotage>) -> Self {
        Self { client, sabotage }
    }
}

#[async_trait]
impl Publisher for TestPublisher {
    async fn publish(&self, messages: &[Message]) -> Vec<Result<(), PublishError>> {
        match self.sabotage {
            Some(Sabotage::DropsMessages) => {
                let kept: Vec<_> = messages
                    .iter()
                    .filter(|_| fastrand::u32(0..30) != 0)
                    .cloned()
                    .collect();
                let sent = self.client.publish(&kept).await;
                match sent.iter().all(Result::is_ok) {
                    true => messages.iter().map(|_| Ok(())).collect(),
                    false => failed(messages),
                }
            }
            Some(Sabotage::SwapsMessages) => {
                let mut swapped = messages.to_vec();
                swap_neighbours(&mut swapped);
                let sent = self.client.publish(&swapped).await;
                match sent.iter().all(Result::is_ok) {
                    true => messages.iter().map(|_| Ok(())).collect(),
                    false => failed(messages),
                }
            }
            _ => self.client.publish(messages).await,
        }
    }
}

fn failed(messages: &[Message]) -> Vec<Result<(), PublishError>> {
    let failed = |_| Err(PublishError::transient("not sent"));
    messages.iter().map(failed).collect()
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
