use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use async_trait::async_trait;
use outbox_runtime::Message;
use outbox_runtime::broker::{
    Acknowledge, BrokerError, Deliveries, Delivery, Subscriber, Subscription,
};
use tokio::sync::{Mutex, mpsc, oneshot, watch};

/// A subscriber that delivers what a test hands it, whatever the subscription, and tells the
/// consumer's answer.
#[derive(Clone)]
pub struct Postman {
    sender: mpsc::UnboundedSender<Letter>,
    letters: Arc<Mutex<mpsc::UnboundedReceiver<Letter>>>,
    is_down: Arc<AtomicBool>,
    refused: Arc<AtomicUsize>,
    is_silent: watch::Sender<bool>,
}

/// What became of a delivery.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// It was acknowledged.
    Acknowledged,
    /// It was given back or dropped.
    GivenBack,
}

struct Letter {
    message: Message,
    malformed: Option<String>,
    answer: oneshot::Sender<Answer>,
}

impl Postman {
    /// A postman whose broker is up.
    #[allow(clippy::new_without_default)]
    pub fn new() -> Self {
        let (sender, letters) = mpsc::unbounded_channel();
        Self {
            sender,
            letters: Arc::new(Mutex::new(letters)),
            is_down: Arc::default(),
            refused: Arc::default(),
            is_silent: watch::Sender::new(false),
        }
    }

    /// Delivers a message; the receiver gets the answer.
    pub fn deliver(&self, message: &Message) -> oneshot::Receiver<Answer> {
        self.send(message, None)
    }

    /// Delivers what is no message, for this reason.
    pub fn deliver_malformed(&self, message: &Message, reason: &str) -> oneshot::Receiver<Answer> {
        self.send(message, Some(reason.to_owned()))
    }

    fn send(&self, message: &Message, malformed: Option<String>) -> oneshot::Receiver<Answer> {
        let (answer, answered) = oneshot::channel();
        let message = message.clone();
        let letter = Letter {
            message,
            malformed,
            answer,
        };
        self.sender.send(letter).expect("the postman lives");
        answered
    }

    /// Refuses subscriptions from now on, or takes them again.
    pub fn set_down(&self, is_down: bool) {
        self.is_down.store(is_down, Ordering::SeqCst);
    }

    /// Answers neither subscriptions nor acknowledgements from now on, or does so again.
    pub fn set_silent(&self, is_silent: bool) {
        self.is_silent.send_replace(is_silent);
    }

    async fn answers(silent: &watch::Sender<bool>) {
        let _ = silent.subscribe().wait_for(|is_silent| !is_silent).await;
    }

    /// How many subscriptions were refused.
    pub fn refused(&self) -> usize {
        self.refused.load(Ordering::SeqCst)
    }
}

#[async_trait]
impl Subscriber for Postman {
    async fn subscribe(&self, _: Subscription) -> Result<Box<dyn Deliveries>, BrokerError> {
        Self::answers(&self.is_silent).await;
        if self.is_down.load(Ordering::SeqCst) {
            self.refused.fetch_add(1, Ordering::SeqCst);
            return Err(BrokerError::new("subscribing", "connection refused"));
        }
        Ok(Box::new(self.clone()))
    }
}

#[async_trait]
impl Deliveries for Postman {
    async fn next(&mut self) -> Result<Option<Delivery>, BrokerError> {
        let letter = self.letters.lock().await.recv().await;
        Ok(letter.map(|letter| {
            let slip = Slip {
                sender: Some(letter.answer),
                is_silent: self.is_silent.clone(),
            };
            match letter.malformed {
                None => Delivery::new(letter.message, 1, slip),
                Some(reason) => Delivery::malformed(letter.message, 1, reason, slip),
            }
        }))
    }
}

struct Slip {
    sender: Option<oneshot::Sender<Answer>>,
    is_silent: watch::Sender<bool>,
}

impl Slip {
    fn answer(&mut self, answer: Answer) {
        if let Some(sender) = self.sender.take() {
            let _ = sender.send(answer);
        }
    }
}

#[async_trait]
impl Acknowledge for Slip {
    async fn ack(mut self: Box<Self>) -> Result<(), BrokerError> {
        Postman::answers(&self.is_silent).await;
        self.answer(Answer::Acknowledged);
        Ok(())
    }

    async fn nack(self: Box<Self>) -> Result<(), BrokerError> {
        Ok(())
    }
}

impl Drop for Slip {
    fn drop(&mut self) {
        self.answer(Answer::GivenBack);
    }
}
