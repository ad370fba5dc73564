use std::io::{Error, ErrorKind};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use outbox_runtime::Message;
use outbox_runtime::broker::{
    Acknowledge, BrokerError, Deliveries, Delivery, PublishError, Publisher, Subscriber,
    Subscription,
};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::{CancellationToken, DropGuard};

use super::frames::{Letter, Reply, Request, line};

/// A service's way to the [`Broker`](super::Broker), from another process.
#[derive(Clone)]
pub struct BrokerClient {
    address: String,
    /// Connections that wait for the next publish.
    idle: Arc<Mutex<Vec<Link>>>,
}

impl BrokerClient {
    /// A client of the broker at that address; it connects when it has to.
    pub fn new(address: impl Into<String>) -> Self {
        Self {
            address: address.into(),
            idle: Arc::default(),
        }
    }

    async fn take_link(&self) -> Result<Link, Error> {
        let idle = self.idle.lock().expect("nothing panics here").pop();
        match idle {
            Some(link) => Ok(link),
            None => Link::open(&self.address).await,
        }
    }

    async fn send(&self, messages: &[Message]) -> Result<(), Error> {
        // A link that failed or was given up midway is not used again.
        let mut link = self.take_link().await?;
        let letters = messages.iter().map(Letter::from).collect();
        link.tell(&Request::Publish(letters)).await?;
        let answer = match link.hear().await? {
            Reply::Published(answer) => answer,
            other => return Err(Error::other(format!("unexpected: {other:?}"))),
        };
        self.idle.lock().expect("nothing panics here").push(link);
        answer.map_err(Error::other)
    }
}

#[async_trait]
impl Publisher for BrokerClient {
    async fn publish(&self, messages: &[Message]) -> Vec<Result<(), PublishError>> {
        let sent = self.send(messages).await;
        let each = |_| match &sent {
            Ok(()) => Ok(()),
            Err(error) => Err(PublishError::transient(error.to_string())),
        };
        messages.iter().map(each).collect()
    }
}

#[async_trait]
impl Subscriber for BrokerClient {
    async fn subscribe(&self, _: Subscription) -> Result<Box<dyn Deliveries>, BrokerError> {
        let opening = async {
            let mut link = Link::open(&self.address).await?;
            link.tell(&Request::Subscribe).await?;
            match link.hear().await? {
                Reply::Subscribed => Ok(link),
                other => Err(Error::other(format!("unexpected: {other:?}"))),
            }
        };
        // Nothing here limits the wait for a broker that swallows the question: that is the
        // consumer's to do, and for the matrix to see.
        let link = opening
            .await
            .map_err(|error: Error| BrokerError::new("subscribing", error))?;
        let (answers, to_send) = mpsc::unbounded_channel();
        let open = CancellationToken::new();
        tokio::spawn(send_answers(link.output, to_send, open.clone()));
        Ok(Box::new(Incoming {
            input: link.input,
            answers,
            _open: open.drop_guard(),
        }))
    }
}

/// Sends what the consumer answers, for as long as the subscription is held.
async fn send_answers(
    mut output: OwnedWriteHalf,
    mut to_send: mpsc::UnboundedReceiver<Answer>,
    open: CancellationToken,
) {
    while let Some(Some(answer)) = open.run_until_cancelled(to_send.recv()).await {
        if output.write_all(&line(&answer.request)).await.is_err() {
            return;
        }
        // Nobody may wait for it any more.
        let _ = answer.is_sent.send(());
    }
}

/// What the consumer says of a delivery.
struct Answer {
    request: Request,
    is_sent: oneshot::Sender<()>,
}

struct Link {
    input: Lines<BufReader<OwnedReadHalf>>,
    output: OwnedWriteHalf,
}

impl Link {
    async fn open(address: &str) -> Result<Self, Error> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        let (input, output) = stream.into_split();
        Ok(Self {
            input: BufReader::new(input).lines(),
            output,
        })
    }

    async fn tell(&mut self, request: &Request) -> Result<(), Error> {
        self.output.write_all(&line(request)).await
    }

    async fn hear(&mut self) -> Result<Reply, Error> {
        let line = self.input.next_line().await?;
        let line = line.ok_or_else(|| Error::from(ErrorKind::ConnectionReset))?;
        serde_json::from_str(&line).map_err(Error::other)
    }
}

struct Incoming {
    input: Lines<BufReader<OwnedReadHalf>>,
    answers: mpsc::UnboundedSender<Answer>,
    _open: DropGuard,
}

#[async_trait]
impl Deliveries for Incoming {
    async fn next(&mut self) -> Result<Option<Delivery>, BrokerError> {
        let failed = |error: Error| BrokerError::new("delivering", error);
        let Some(line) = self.input.next_line().await.map_err(failed)? else {
            return Ok(None);
        };
        match serde_json::from_str(&line).map_err(|error| failed(Error::other(error)))? {
            Reply::Delivery(tag, attempt, letter) => {
                let answers = self.answers.clone();
                let slip = Slip { tag, answers };
                Ok(Some(Delivery::new((*letter).into(), attempt, slip)))
            }
            other => Err(failed(Error::other(format!("unexpected: {other:?}")))),
        }
    }
}

struct Slip {
    tag: u64,
    answers: mpsc::UnboundedSender<Answer>,
}

impl Slip {
    /// Waits until it is sent, so that a process that dies next has answered.
    async fn answer(&self, request: Request) -> Result<(), BrokerError> {
        let (is_sent, sent) = oneshot::channel();
        let closed = || BrokerError::new("answering", Error::from(ErrorKind::NotConnected));
        let answer = Answer { request, is_sent };
        self.answers.send(answer).map_err(|_| closed())?;
        sent.await.map_err(|_| closed())
    }
}

// A slip that is dropped says nothing: the message comes back when the broker has waited enough or
// the connection is gone.
#[async_trait]
impl Acknowledge for Slip {
    async fn ack(self: Box<Self>) -> Result<(), BrokerError> {
        self.answer(Request::Ack(self.tag)).await
    }

    async fn nack(self: Box<Self>) -> Result<(), BrokerError> {
        self.answer(Request::Nack(self.tag)).await
    }
}
