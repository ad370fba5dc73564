use std::sync::Arc;

use async_trait::async_trait;
use futures_util::future::try_join_all;
use tokio::sync::{Semaphore, mpsc};
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

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

/// Takes the subscription's streams over from whoever reads them, and begins to read.
pub(super) async fn subscribe(
    broker: &RedisBroker,
    subscription: &Subscription,
) -> Result<Box<dyn Deliveries>, BrokerError> {
    let failed = |failure: Failure| BrokerError::new("subscribing", failure);
    let within = broker.options.confirm_within;
    let link = broker.consuming.get(within).await.map_err(failed)?;
    let lost = CancellationToken::new();
    let group = Arc::new(Group {
        name: subscription.group.clone(),
        link,
        within,
        lost: lost.clone(),
    });
    let name = format!("outbox-{}", Clock::system().new_id());
    let streams = broker.streams_of(subscription).into_iter();
    let declare = broker.options.declare;
    let taking = streams.map(|stream| take_over(&group, &name, stream, declare));
    let sources = try_join_all(taking).await.map_err(failed)?;
    let (deliver, delivered) = mpsc::channel(READ_AT_ONCE);
    let reader = Reader {
        name,
        group,
        server: Arc::clone(&broker.server),
        room: Arc::new(Semaphore::new(broker.options.prefetch)),
        decoder: Decoder::new(Binding::REDIS, subscription, &broker.options.foreign),
        deliver,
    };
    Ok(Box::new(Reading {
        delivered,
        lost,
        _reader: AbortOnDropHandle::new(tokio::spawn(reader.run(sources))),
    }))
}

/// The messages of a subscription, as the reader in the background hands them over.
struct Reading {
    delivered: mpsc::Receiver<Result<Delivery, BrokerError>>,
    lost: CancellationToken,
    /// Closes its connection, too, on which it may be waiting for news.
    _reader: AbortOnDropHandle<()>,
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

async fn take_over(
    group: &Group,
    reader: &str,
    stream: StreamName,
    declare: bool,
) -> Result<Source, Failure> {
    let taken = ask_for(group, reader, &stream.key, declare);
    let (read_to, gone) = taken.await.map_err(|failure| failure.at(&stream.key))?;
    for id in gone {
        tell_lost(&stream.key, &group.name, &id);
    }
    Ok(Source {
        stream: stream.key.into(),
        is_foreign: stream.is_foreign,
        progress: Progress::Again(Id::default()),
        seen: read_to.parse()?,
        has_news: true,
    })
}

/// How far the group has read, and which unacknowledged entries are gone.
async fn ask_for(
    group: &Group,
    reader: &str,
    stream: &str,
    declare: bool,
) -> Result<(String, Vec<String>), Failure> {
    let mut call = script_call(&TAKE_OVER, stream);
    call.arg(&group.name).arg(reader).arg(u8::from(declare));
    let answer = group
        .link
        .run_script(&TAKE_OVER, &call, group.within)
        .await?;
    let [read_to, gone] = pair(answer)?;
    let gone = array(gone)?.into_iter().map(text);
    Ok((text(read_to)?, gone.collect::<Result<_, _>>()?))
}
