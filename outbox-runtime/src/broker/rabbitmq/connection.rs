use std::collections::{BTreeSet, HashMap};
use std::ops::Deref;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::future::{BoxFuture, FutureExt, Shared};
use lapin::options::ConfirmSelectOptions;
use lapin::tcp::AMQPUriTcpExt;
use lapin::types::ShortString;
use lapin::uri::AMQPUri;
use lapin::{Channel, Connection, ConnectionProperties};
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::timeout;
use tracing::info;
use tracing::subscriber::{DefaultGuard, NoSubscriber, set_default};

use super::failure::Failure;
use super::server::Server;

/// How many messages are in flight at once. Each has a channel to itself.
const CHANNELS: usize = 64;

/// A connection that is made when it is first needed, and made anew after a break.
///
/// There is one for publishing and one for consuming, since RabbitMQ holds up a connection whose
/// publisher is too fast, and acknowledgements must not be held up with it.
#[derive(Clone)]
pub(super) struct Link {
    server: Arc<Server>,
    /// What operators see it by.
    name: &'static str,
    current: Arc<Mutex<Option<Attempt>>>,
}

/// A connection that is being made, or was made, or could not be made. It goes on in a task of its
/// own, so that one caller's short patience does not begin it anew for all others.
type Attempt = Shared<BoxFuture<'static, Result<Arc<Established>, Failure>>>;

/// A connection that was made.
pub(super) struct Established {
    connection: Connection,
    permits: Semaphore,
    /// Channels for publishing that nobody uses at the moment.
    idle: Mutex<Vec<OwnChannel>>,
    /// Held while a group's queues are made, so that it is done once.
    pub(super) declaring: tokio::sync::Mutex<()>,
    /// The groups whose queues were made over this connection, and for which event types.
    declared: Mutex<HashMap<String, BTreeSet<String>>>,
    /// Queues of foreign topics that can't be read, of which somebody was told.
    unreadable: Mutex<BTreeSet<ShortString>>,
}

impl Link {
    pub(super) fn new(server: Arc<Server>, name: &'static str) -> Self {
        Self {
            server,
            name,
            current: Arc::default(),
        }
    }

    /// The connection; if it broke, a new one.
    ///
    /// # Cancel safety
    /// The connection is made all the same, and the next call gets it.
    pub(super) async fn get(&self) -> Result<Arc<Established>, Failure> {
        let attempt = {
            let mut current = lock(&self.current);
            match &*current {
                Some(attempt) if is_usable(attempt) => attempt.clone(),
                _ => current.insert(self.attempt()).clone(),
            }
        };
        attempt.await
    }

    fn attempt(&self) -> Attempt {
        let connecting = tokio::spawn(connect(Arc::clone(&self.server), self.name));
        let attempt = async move { connecting.await.unwrap_or(Err(Failure::Closed)) };
        attempt.boxed().shared()
    }
}

/// Whether to wait for it, or to use what came of it.
fn is_usable(attempt: &Attempt) -> bool {
    match attempt.peek() {
        None => true,
        Some(Ok(established)) => established.connection.status().connected(),
        Some(Err(_)) => false,
    }
}

async fn connect(server: Arc<Server>, name: &'static str) -> Result<Arc<Established>, Failure> {
    let mut result = Err(Failure::NoAnswer(Duration::ZERO));
    for address in server.addresses() {
        result = connect_to(&server, address, name).await;
        if result.is_ok() {
            info!(name, "connected to RabbitMQ");
            break;
        }
    }
    result
}

async fn connect_to(
    server: &Server,
    address: AMQPUri,
    name: &'static str,
) -> Result<Arc<Established>, Failure> {
    let (tls, limit) = (server.tls(), server.connect_within);
    let connecting = Connection::connector(
        address,
        lapin::runtime::default_runtime()?,
        // With a limit of its own, as it has a thread of its own, which would stay otherwise.
        async move |address: AMQPUri, runtime| {
            silence_this_thread();
            let stream = address.connect_with_config_async(tls.as_ref(), &runtime);
            match timeout(limit, stream).await {
                Ok(stream) => Ok(stream?),
                Err(elapsed) => Err(std::io::Error::from(elapsed).into()),
            }
        },
        ConnectionProperties::default().with_connection_name(name.into()),
    );
    let connection = timeout(limit, connecting)
        .await
        .map_err(|_| Failure::NoAnswer(limit))??;
    Ok(Arc::new(Established {
        connection,
        permits: Semaphore::new(CHANNELS),
        idle: Mutex::default(),
        declaring: tokio::sync::Mutex::default(),
        declared: Mutex::default(),
        unreadable: Mutex::default(),
    }))
}

/// Has lapin's own thread log nothing: it would log each message that the server returns, with its
/// content. What goes wrong there comes as an error to whoever waits for it.
fn silence_this_thread() {
    thread_local! {
        static SILENT: DefaultGuard = set_default(NoSubscriber::default());
    }
    if std::thread::current().name() == Some("lapin-io-loop") {
        SILENT.with(|_| {});
    }
}

impl Established {
    /// A new channel.
    pub(super) async fn channel(&self) -> Result<OwnChannel, Failure> {
        Ok(OwnChannel(self.connection.create_channel().await?))
    }

    /// A channel for one message, with publisher confirms.
    ///
    /// One message a channel: when the server closes a channel over a message it can only be that
    /// one, and a message that it returns is that one, too.
    pub(super) async fn publishing_channel(&self) -> Result<PublishingChannel<'_>, Failure> {
        if self.connection.status().blocked() {
            return Err(Failure::Blocked("it is short of memory or disk"));
        }
        let permit = self.permits.acquire().await.map_err(|_| Failure::Closed)?;
        let channel = match self.take_idle() {
            Some(channel) => channel,
            None => {
                let channel = self.channel().await?;
                channel
                    .confirm_select(ConfirmSelectOptions::default())
                    .await?;
                channel
            }
        };
        Ok(PublishingChannel {
            channel,
            established: self,
            _permit: permit,
        })
    }

    /// The largest frame, which a message's properties have to fit into.
    pub(super) fn frame_bytes(&self) -> usize {
        usize::try_from(self.connection.configuration().frame_max()).unwrap_or(usize::MAX)
    }

    /// Whether the group's queues were made with bindings for these.
    pub(super) fn is_declared(&self, group: &str, event_types: &BTreeSet<String>) -> bool {
        lock(&self.declared).get(group) == Some(event_types)
    }

    pub(super) fn note_declared(&self, group: &str, event_types: &BTreeSet<String>) {
        lock(&self.declared).insert(group.to_owned(), event_types.clone());
    }

    /// Has the group's queues made again by whoever subscribes next.
    pub(super) fn forget_declared(&self, group: &str) {
        lock(&self.declared).remove(group);
    }

    /// Whether that is news.
    pub(super) fn note_unreadable(&self, queue: &ShortString) -> bool {
        lock(&self.unreadable).insert(queue.clone())
    }

    /// Whether that is news.
    pub(super) fn note_readable(&self, queue: &ShortString) -> bool {
        lock(&self.unreadable).remove(queue)
    }

    fn take_idle(&self) -> Option<OwnChannel> {
        let mut idle = lock(&self.idle);
        loop {
            let channel = idle.pop()?;
            if channel.status().connected() {
                return Some(channel);
            }
        }
    }
}

/// A channel that is closed when it is dropped.
///
/// lapin's own way cancels a channel's consumers first, at which RabbitMQ would go on to the next
/// consumer before it has back what the former one did not acknowledge.
pub(super) struct OwnChannel(Channel);

impl Deref for OwnChannel {
    type Target = Channel;

    fn deref(&self) -> &Channel {
        &self.0
    }
}

impl Drop for OwnChannel {
    fn drop(&mut self) {
        // The first poll sends it. If that fails the channel is closed already.
        let _ = self.0.close(200, "OK".into()).now_or_never();
    }
}

/// A channel that one message goes over. It is closed unless it is [given back](Self::give_back).
pub(super) struct PublishingChannel<'a> {
    channel: OwnChannel,
    established: &'a Established,
    _permit: SemaphorePermit<'a>,
}

impl PublishingChannel<'_> {
    /// Keeps it for another message. Nothing is in flight on it any more.
    pub(super) fn give_back(self) {
        lock(&self.established.idle).push(self.channel);
    }
}

impl Deref for PublishingChannel<'_> {
    type Target = Channel;

    fn deref(&self) -> &Channel {
        &self.channel
    }
}

/// Nothing panics while these locks are held; if it did, what they guard would still be whole.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
