use std::collections::HashMap;
use std::sync::atomic::Ordering;
use std::sync::{Arc, MutexGuard};
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::frames::{Reply, Request, line};
use super::queue::{ConnectionId, Queue};
use super::{Conduct, Mood, Shared};

/// How many messages are with a connection at a time.
const PREFETCH: usize = 64;

/// Accepts connections for as long as the broker is up.
pub(super) async fn serve(shared: Arc<Shared>, listener: TcpListener, up: CancellationToken) {
    while let Some(accepted) = up.run_until_cancelled(listener.accept()).await {
        let Ok((stream, _)) = accepted else { continue };
        let _ = stream.set_nodelay(true);
        tokio::spawn(connection(Arc::clone(&shared), stream, up.child_token()));
    }
}

/// Takes messages back from connections that hold them for too long.
pub(super) async fn sweep(shared: Arc<Shared>, up: CancellationToken) {
    let pause = Duration::from_millis(50);
    while up
        .run_until_cancelled(tokio::time::sleep(pause))
        .await
        .is_some()
    {
        let patience = shared.conduct().patience;
        let silent = shared.queue().silent(patience);
        let connections = shared.connections();
        for connection in silent {
            if let Some(open) = connections.get(&connection) {
                open.cancel();
            }
        }
    }
}

async fn connection(shared: Arc<Shared>, stream: TcpStream, open: CancellationToken) {
    let id = shared.next_connection.fetch_add(1, Ordering::SeqCst);
    let (input, output) = stream.into_split();
    let (replies, to_send) = mpsc::channel(PREFETCH);
    let guard = open.clone().drop_guard();
    shared.connections().insert(id, open.clone());
    tokio::spawn(send(output, to_send, open.clone()));
    let talking = read(&shared, id, input, &replies, &open);
    open.run_until_cancelled(talking).await;
    drop(guard);
    shared.connections().remove(&id);
    shared.queue().disconnect(id);
    shared.news.notify_waiters();
}

async fn send(
    mut output: OwnedWriteHalf,
    mut replies: mpsc::Receiver<Reply>,
    open: CancellationToken,
) {
    let sending = async {
        while let Some(reply) = replies.recv().await {
            if output.write_all(&line(&reply)).await.is_err() {
                return;
            }
        }
    };
    open.run_until_cancelled(sending).await;
    open.cancel();
}

/// Does what a client asks for, until the connection ends or is to break.
async fn read(
    shared: &Arc<Shared>,
    id: ConnectionId,
    input: OwnedReadHalf,
    replies: &mpsc::Sender<Reply>,
    open: &CancellationToken,
) {
    let mut lines = BufReader::new(input).lines();
    while let Ok(Some(line)) = lines.next_line().await {
        let Ok(request) = serde_json::from_str(&line) else {
            return;
        };
        let conduct = shared.conduct();
        if conduct.mood == Mood::BlackHole {
            if matches!(request, Request::Publish(_)) {
                shared.refusals.fetch_add(1, Ordering::SeqCst);
            }
            continue;
        }
        match request {
            Request::Publish(letters) => {
                if !conduct.delay.is_zero() {
                    tokio::time::sleep(conduct.delay).await;
                    shared.slow_publishes.fetch_add(1, Ordering::SeqCst);
                }
                if conduct.mood == Mood::Refusing || happens(conduct.rates.refused) {
                    shared.refusals.fetch_add(1, Ordering::SeqCst);
                    let no = Err("the broker takes nothing now".to_owned());
                    if replies.send(Reply::Published(no)).await.is_err() {
                        return;
                    }
                    continue;
                }
                letters
                    .into_iter()
                    .for_each(|letter| shared.queue().push(letter));
                shared.news.notify_waiters();
                if happens(conduct.rates.unanswered) {
                    shared.refusals.fetch_add(1, Ordering::SeqCst);
                    return;
                }
                if replies.send(Reply::Published(Ok(()))).await.is_err() {
                    return;
                }
            }
            Request::Subscribe if conduct.mood == Mood::Refusing => return,
            Request::Subscribe => {
                if replies.send(Reply::Subscribed).await.is_err() {
                    return;
                }
                let delivering = deliver(Arc::clone(shared), id, replies.clone());
                let open = open.clone();
                tokio::spawn(async move { open.run_until_cancelled(delivering).await });
            }
            Request::Ack(_) if happens(conduct.rates.unacknowledged) => {}
            Request::Ack(tag) => {
                shared.queue().ack(tag);
                shared.news.notify_waiters();
            }
            Request::Nack(tag) => {
                shared.queue().nack(tag);
                shared.news.notify_waiters();
            }
        }
    }
}

async fn deliver(shared: Arc<Shared>, id: ConnectionId, replies: mpsc::Sender<Reply>) {
    loop {
        // Asked for before the look, so that nothing that comes in between is missed.
        let news = shared.news.notified();
        let next = shared.next_for(id);
        match next {
            Some(reply) => {
                if replies.send(reply).await.is_err() {
                    return;
                }
            }
            None => news.await,
        }
    }
}

impl Shared {
    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().expect("nothing panics here")
    }

    fn connections(&self) -> MutexGuard<'_, HashMap<ConnectionId, CancellationToken>> {
        self.connections.lock().expect("nothing panics here")
    }

    fn conduct(&self) -> Conduct {
        *self.conduct.lock().expect("nothing panics here")
    }

    fn next_for(&self, id: ConnectionId) -> Option<Reply> {
        if self.conduct().mood == Mood::BlackHole {
            return None;
        }
        let mut queue = self.queue();
        // A connection that has ended takes nothing with it any more: nobody would bring it back.
        if !self.connections().contains_key(&id) {
            return None;
        }
        if queue.with(id) >= PREFETCH {
            return None;
        }
        let (tag, deliveries, letter) = queue.take(id)?;
        Some(Reply::Delivery(tag, deliveries, Box::new(letter)))
    }
}

fn happens(per_mille: u32) -> bool {
    fastrand::u32(0..1000) < per_mille
}
