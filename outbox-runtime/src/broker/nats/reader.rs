use std::collections::HashMap;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_nats::jetstream::consumer::Consumer;
use async_nats::jetstream::consumer::pull::{self, Config, MessagesError};
use async_nats::jetstream::{self};
use async_nats::{Client, Subject};
use async_trait::async_trait;
use futures_util::stream::{SelectAll, once};
use futures_util::{Stream, StreamExt};
use tokio::task::JoinHandle;
use tokio::time::{MissedTickBehavior, interval, sleep, timeout};
use tokio_util::sync::{CancellationToken, DropGuard};
use tracing::{debug, warn};

use super::connection::Established;
use super::consuming::{Wanted, take_over};
use super::names::ConsumerName;
use super::{NatsBroker, names, stream};
use crate::broker::cloud_events::{Binding, Decoder};
use crate::broker::partition::partition_of_foreign;
use crate::broker::raw::RawMessage;
use crate::broker::{Acknowledge, BoxError, BrokerError, Deliveries, Delivery, Subscription};

/// How often a server that has nothing to send says that it is there.
const HEARTBEAT: Duration = Duration::from_secs(5);
/// What acknowledges a message.
const ACK: &str = "+ACK";
const EXPIRES: Duration = Duration::from_secs(30);
/// How long until a stream of others that could not be read is tried again.
const FOREIGN_AGAIN: Duration = Duration::from_secs(5);

/// Reads one partition, or what else a subscription asks for.
pub(super) struct Reader {
    arriving: SelectAll<Pin<Box<dyn Stream<Item = Arrival> + Send>>>,
    sources: Vec<Source>,
    decoder: Decoder,
    desk: Arc<Desk>,
    given_back: CancellationToken,
    renewing: JoinHandle<()>,
}

/// A stream that is read.
struct Source {
    name: String,
    is_foreign: bool,
    /// How many messages its consumer has delivered so far. The server counts them too, so a gap
    /// shows what was lost on the way.
    delivered: u64,
}

enum Arrival {
    Message(usize, Box<jetstream::Message>),
    Broken(BoxError),
    Ended,
}

/// Joins the group: takes over its consumers of the partition, and reads by new ones.
pub(super) async fn open(
    broker: &NatsBroker,
    subscription: &Subscription,
) -> Result<Reader, BoxError> {
    let established = broker.connection.get().await?;
    let given_back = CancellationToken::new();
    let desk = Arc::new(Desk::new(
        established.client.clone(),
        broker.options.confirm_within,
    ));
    let renewing = tokio::spawn(renew(Arc::clone(&desk), broker.ack_wait / 3));
    let mut reader = Reader {
        arriving: SelectAll::new(),
        sources: Vec::new(),
        decoder: Decoder::new(Binding::NATS, subscription, &broker.options.foreign),
        desk,
        given_back,
        renewing,
    };
    reader.add_topics(broker, established, subscription).await?;
    reader.add_foreign(broker, subscription);
    Ok(reader)
}

impl Reader {
    async fn add_topics(
        &mut self,
        broker: &NatsBroker,
        established: &Established,
        subscription: &Subscription,
    ) -> Result<(), BoxError> {
        let topics = &broker.options.topics;
        for topic in topics.of_all(&subscription.event_types) {
            let stream = stream::of_topic(broker, established, topic).await?;
            let filter = match subscription.partition {
                Some(partition) => names::subjects_of_partition(topics, topic, partition),
                None => names::subjects(topics, topic),
            };
            let prefix = ConsumerName::prefix(&subscription.group, subscription.partition);
            let wanted = wanted(broker, prefix, filter);
            let messages = read(broker, &take_over(&stream, &wanted).await?).await?;
            self.add(names::stream(topics, topic), false, messages);
        }
        Ok(())
    }

    /// Topics of others are read as soon as they can be: what is wrong with them stops nothing of
    /// our own.
    fn add_foreign(&mut self, broker: &NatsBroker, subscription: &Subscription) {
        for foreign in &broker.options.foreign {
            let partition = partition_of_foreign(&foreign.name, broker.options.partitions);
            if subscription.partition.is_some_and(|ours| ours != partition) {
                continue;
            }
            let prefix =
                ConsumerName::prefix_of_foreign(&broker.options.topics, &subscription.group);
            let wanted = wanted(broker, prefix, String::new());
            let messages = open_foreign(broker.clone(), foreign.name.clone(), wanted);
            self.add(foreign.name.clone(), true, once(messages).flatten());
        }
    }

    fn add(
        &mut self,
        name: String,
        is_foreign: bool,
        messages: impl Stream<Item = Result<jetstream::Message, MessagesError>> + Send + 'static,
    ) {
        let index = self.sources.len();
        self.sources.push(Source {
            name,
            is_foreign,
            delivered: 0,
        });
        let arrivals = messages.map(move |message| match message {
            Ok(message) => Arrival::Message(index, Box::new(message)),
            Err(error) => Arrival::Broken(error.into()),
        });
        let ended = once(std::future::ready(Arrival::Ended));
        self.arriving.push(Box::pin(arrivals.chain(ended)));
    }

    /// The delivery of what has arrived, or what acknowledges it if nobody here wants it.
    fn deliver(
        &mut self,
        index: usize,
        message: &jetstream::Message,
    ) -> Result<Result<Delivery, Subject>, BoxError> {
        let source = self.sources.get_mut(index).ok_or("an unknown stream")?;
        let info = message.info()?;
        source.delivered += 1;
        if info.consumer_sequence != source.delivered {
            return Err(format!(
                "messages of the stream {} were lost on the way; reading on at the first that is not \
                 acknowledged",
                source.name
            )
            .into());
        }
        let reply = message
            .reply
            .clone()
            .ok_or("a message without a reply subject")?;
        // By way of a type of the standard library: which one the client has is decided by others,
        // who may ask it for `chrono`.
        let published_at = std::time::SystemTime::from(info.published);
        let mut raw = RawMessage::new(
            &source.name,
            info.stream_sequence.to_string(),
            message.payload.to_vec(),
        );
        raw.has_time_of_place = true;
        raw.key = Some(message.subject.to_string());
        raw.published_at = Some(published_at.into());
        if let Some(headers) = &message.headers {
            for (name, values) in headers.iter() {
                if let Some(value) = values.first() {
                    raw.headers.insert(name.to_string(), value.to_string());
                }
            }
        }
        raw.content_type = raw.header("content-type").map(ToOwned::to_owned);
        let attempt = u32::try_from(info.delivered).unwrap_or(1);
        let foreign = source.is_foreign.then_some(source.name.as_str());
        let Some(decoded) = self.decoder.decode(&raw, foreign) else {
            return Ok(Err(reply));
        };
        let slip = Slip {
            place: self.desk.enter(reply.clone()),
            reply,
            desk: Arc::clone(&self.desk),
            guard: self.given_back.clone().drop_guard(),
        };
        Ok(Ok(decoded.deliver(attempt, slip)))
    }
}

#[async_trait]
impl Deliveries for Reader {
    async fn next(&mut self) -> Result<Option<Delivery>, BrokerError> {
        let broken = |error: BoxError| BrokerError::new("receiving", error);
        loop {
            let arrival = tokio::select! {
                biased;
                () = self.given_back.cancelled() => {
                    return Err(broken(
                        "a message was given back; reading on at the first that is not acknowledged"
                            .into(),
                    ));
                }
                arrival = self.arriving.next() => arrival,
            };
            match arrival {
                Some(Arrival::Message(index, message)) => {
                    match self.deliver(index, &message).map_err(broken)? {
                        Ok(delivery) => return Ok(Some(delivery)),
                        // Without an answer: if it is lost, the message comes again, and is unwanted
                        // again.
                        Err(unwanted) => {
                            let told = self.desk.client.publish(unwanted, ACK.into()).await;
                            told.map_err(|error| broken(error.into()))?;
                        }
                    }
                }
                Some(Arrival::Broken(error)) => return Err(broken(error)),
                Some(Arrival::Ended) | None => return Ok(None),
            }
        }
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        self.renewing.abort();
    }
}

fn wanted(broker: &NatsBroker, prefix: String, filter: String) -> Wanted {
    Wanted {
        prefix,
        filter,
        ack_wait: broker.ack_wait,
        most_pending: broker.options.prefetch,
    }
}

async fn read(broker: &NatsBroker, consumer: &Consumer<Config>) -> Result<pull::Stream, BoxError> {
    let messages = consumer
        .stream()
        .max_messages_per_batch(broker.options.prefetch)
        .heartbeat(HEARTBEAT)
        .expires(EXPIRES)
        .messages()
        .await?;
    Ok(messages)
}

/// Opens a stream of others, as soon as that can be done.
async fn open_foreign(broker: NatsBroker, name: String, wanted: Wanted) -> pull::Stream {
    let mut is_told = false;
    loop {
        let opening = async {
            let established = broker.connection.get().await?;
            let stream = stream::existing(established, &name).await?;
            read(&broker, &take_over(&stream, &wanted).await?).await
        };
        match opening.await {
            Ok(messages) => return messages,
            Err(error) if is_told => debug!(%error, name, "the foreign stream can't be read yet"),
            Err(error) => {
                warn!(%error, name, "a foreign stream can't be read; it is tried again");
                is_told = true;
            }
        }
        sleep(FOREIGN_AGAIN).await;
    }
}

/// Keeps what is not answered yet, and answers.
struct Desk {
    client: Client,
    timeout: Duration,
    open: Mutex<HashMap<u64, Subject>>,
    next: AtomicU64,
}

impl Desk {
    fn new(client: Client, timeout: Duration) -> Self {
        Self {
            client,
            timeout,
            open: Mutex::default(),
            next: AtomicU64::new(0),
        }
    }

    fn enter(&self, reply: Subject) -> u64 {
        let place = self.next.fetch_add(1, Ordering::Relaxed);
        self.lock().insert(place, reply);
        place
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<u64, Subject>> {
        // Nothing panics while the lock is held; if it did, the map would still be whole.
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Extends the deadlines of what is in work.
async fn renew(desk: Arc<Desk>, every: Duration) {
    let mut ticks = interval(every);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        let open: Vec<Subject> = desk.lock().values().cloned().collect();
        for reply in open {
            // Without a connection the server finds out by itself.
            let _ = desk.client.publish(reply, "+WPI".into()).await;
        }
    }
}

struct Slip {
    place: u64,
    reply: Subject,
    desk: Arc<Desk>,
    /// Whatever ends without an acknowledgement ends the subscription, which starts again there.
    guard: DropGuard,
}

#[async_trait]
impl Acknowledge for Slip {
    async fn ack(self: Box<Self>) -> Result<(), BrokerError> {
        let Self {
            place,
            reply,
            desk,
            guard,
        } = *self;
        let limit = desk.timeout;
        let answer = timeout(limit, desk.client.request(reply, ACK.into())).await;
        desk.lock().remove(&place);
        match answer {
            Ok(Ok(_)) => {
                guard.disarm();
                Ok(())
            }
            Ok(Err(error)) => Err(BrokerError::new("acknowledging", error)),
            Err(_) => Err(BrokerError::new(
                "acknowledging",
                format!("NATS did not answer within {limit:?}"),
            )),
        }
    }

    async fn nack(self: Box<Self>) -> Result<(), BrokerError> {
        Ok(())
    }
}
