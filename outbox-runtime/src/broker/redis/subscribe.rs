use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures_util::future::try_join_all;
use tokio::sync::{Semaphore, mpsc};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;
use tracing::{debug, warn};

use super::RedisBroker;
use super::connection::script_call;
use super::entry::{Id, array, pair, text};
use super::failure::Failure;
use super::reader::{Progress, READ_AT_ONCE, Reader, Source, tell_lost};
use super::slip::Group;
use super::topology::{StreamName, TAKE_OVER};
use crate::broker::cloud_events::{Binding, Decoder};
use crate::broker::{BrokerError, Deliveries, Delivery, Subscription};
use crate::clock::Clock;

/// How long until a stream of others that could not be read is tried again.
const FOREIGN_AGAIN: Duration = Duration::from_secs(5);

/// Takes the subscription's streams over from whoever reads them, and begins to read.
pub(super) async fn subscribe(
    broker: &RedisBroker,
    subscription: &Subscription,
) -> Result<Box<dyn Deliveries>, BrokerError> {
    let failed = |failure: Failure| BrokerError::new("subscribing", failure);
    let within = broker.options.confirm_within;
    let link = broker.consuming.get(within).await.map_err(failed)?;
    let lost = CancellationToken::new();
    let group = |name: String| {
        Arc::new(Group {
            name,
            link: link.clone(),
            within,
            lost: lost.clone(),
        })
    };
    let (deliver, delivered) = mpsc::channel(READ_AT_ONCE);
    let reader = Reader {
        name: format!("outbox-{}", Clock::system().new_id()),
        group: group(subscription.group.clone()),
        server: Arc::clone(&broker.server),
        room: Arc::new(Semaphore::new(broker.options.prefetch)),
        decoder: Decoder::new(Binding::REDIS, subscription, &broker.options.foreign),
        deliver,
    };
    let (foreign, own): (Vec<_>, Vec<_>) = broker
        .streams_of(subscription)
        .into_iter()
        .partition(|stream| stream.is_foreign);
    let (declare, declare_foreign) = match broker.options.declare {
        true => (Declare::Stream, Declare::Group),
        false => (Declare::Nothing, Declare::Nothing),
    };
    let taking = own.iter().map(|stream| take_over(&reader, stream, declare));
    let sources = try_join_all(taking).await.map_err(failed)?;
    // Services of several namespaces may read a stream of others.
    let namespace = broker.options.topics.namespace();
    let of_foreign = Reader {
        group: group(format!("{namespace}.{}", subscription.group)),
        ..reader.clone()
    };
    let mut readers: Vec<_> = foreign
        .into_iter()
        .map(|stream| tokio::spawn(read_foreign(of_foreign.clone(), stream, declare_foreign)))
        .map(AbortOnDropHandle::new)
        .collect();
    readers.push(AbortOnDropHandle::new(tokio::spawn(reader.run(sources))));
    Ok(Box::new(Reading {
        delivered,
        lost,
        _readers: readers,
    }))
}

/// Reads a stream of others as soon as that can be done: what is wrong with it stops nothing of our
/// own.
async fn read_foreign(reader: Reader, stream: StreamName, declare: Declare) {
    let mut is_told = false;
    let source = loop {
        match take_over(&reader, &stream, declare).await {
            Ok(source) => break source,
            Err(error) if is_told => {
                debug!(%error, stream = stream.key, "the foreign stream can't be read yet");
            }
            Err(error) => {
                let stream = &stream.key;
                warn!(%error, stream, "a foreign stream can't be read; it is tried again");
                is_told = true;
            }
        }
        sleep(FOREIGN_AGAIN).await;
    };
    reader.run(vec![source]).await;
}

/// The messages of a subscription, as the reader in the background hands them over.
struct Reading {
    delivered: mpsc::Receiver<Result<Delivery, BrokerError>>,
    lost: CancellationToken,
    /// Closes their connections, too, on which they may be waiting for news.
    _readers: Vec<AbortOnDropHandle<()>>,
}

#[async_trait]
impl Deliveries for Reading {
    async fn next(&mut self) -> Result<Option<Delivery>, BrokerError> {
        tokio::select! {
            biased;
            () = self.lost.cancelled() => Err(BrokerError::new(
                "receiving",
                "a message was given back or its acknowledgement failed, so what is not \
                 acknowledged has to come again in order",
            )),
            delivered = self.delivered.recv() => delivered.transpose(),
        }
    }
}

/// What may be made where it is missing.
#[derive(Debug, Clone, Copy)]
enum Declare {
    Nothing,
    /// The group of a stream that is there.
    Group,
    Stream,
}

impl Declare {
    const fn argument(self) -> &'static str {
        match self {
            Self::Nothing => "",
            Self::Group => "group",
            Self::Stream => "stream",
        }
    }
}

async fn take_over(
    reader: &Reader,
    stream: &StreamName,
    declare: Declare,
) -> Result<Source, Failure> {
    let taken = ask_for(reader, &stream.key, declare);
    let (read_to, gone) = taken.await.map_err(|failure| failure.at(&stream.key))?;
    for id in gone {
        tell_lost(&stream.key, &reader.group.name, &id);
    }
    Ok(Source {
        stream: stream.key.as_str().into(),
        is_foreign: stream.is_foreign,
        progress: Progress::Again(Id::default()),
        seen: read_to.parse()?,
        has_news: true,
    })
}

/// How far the group has read, and which unacknowledged entries are gone.
async fn ask_for(
    reader: &Reader,
    stream: &str,
    declare: Declare,
) -> Result<(String, Vec<String>), Failure> {
    let group = &reader.group;
    let mut call = script_call(&TAKE_OVER, stream);
    call.arg(&group.name)
        .arg(&reader.name)
        .arg(declare.argument());
    let answer = group
        .link
        .run_script(&TAKE_OVER, &call, group.within)
        .await?;
    let [read_to, gone] = pair(answer)?;
    let gone = array(gone)?.into_iter().map(text);
    Ok((text(read_to)?, gone.collect::<Result<_, _>>()?))
}
