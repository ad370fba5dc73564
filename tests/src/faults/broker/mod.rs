//! A broker of the harness, reached over TCP from other processes.
//!
//! It lives in the process that directs a test, so it survives the workers that are killed, and
//! keeps what it has taken until that is acknowledged, as a durable broker does. It can refuse,
//! swallow everything, be slow, lose answers, deliver twice, and be down.

mod client;
mod frames;
mod queue;
mod server;

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::sync::Notify;
use tokio_util::sync::{CancellationToken, DropGuard};

pub use client::BrokerClient;
use queue::{ConnectionId, Queue};
use server::{serve, sweep};

/// How the broker treats those who talk to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Mood {
    /// It does its work.
    #[default]
    Kind,
    /// It takes nothing and says so.
    Refusing,
    /// It reads what comes and answers nothing; nothing of it has an effect.
    BlackHole,
}

/// How often something goes wrong, in a thousand cases.
#[derive(Debug, Clone, Copy, Default)]
pub struct Rates {
    /// A publish is refused.
    pub refused: u32,
    /// A publish is taken, and instead of the answer the connection breaks.
    pub unanswered: u32,
    /// An acknowledgement is lost, and the message delivered again after a while.
    pub unacknowledged: u32,
}

/// The broker.
pub struct Broker {
    shared: Arc<Shared>,
    address: SocketAddr,
    running: Option<DropGuard>,
}

/// What the connections share.
struct Shared {
    queue: Mutex<Queue>,
    conduct: Mutex<Conduct>,
    /// There is something to deliver.
    news: Notify,
    connections: Mutex<HashMap<ConnectionId, CancellationToken>>,
    next_connection: AtomicU64,
    refusals: AtomicU64,
    slow_publishes: AtomicU64,
}

#[derive(Clone, Copy)]
struct Conduct {
    mood: Mood,
    rates: Rates,
    /// How long a publish takes.
    delay: Duration,
    /// A connection that holds a message for longer is closed.
    patience: Duration,
}

impl Broker {
    /// A broker that is up.
    pub async fn start() -> Self {
        let shared = Arc::new(Shared {
            queue: Mutex::default(),
            conduct: Mutex::new(Conduct {
                mood: Mood::Kind,
                rates: Rates::default(),
                delay: Duration::ZERO,
                patience: Duration::from_secs(5),
            }),
            news: Notify::new(),
            connections: Mutex::default(),
            next_connection: AtomicU64::new(0),
            refusals: AtomicU64::new(0),
            slow_publishes: AtomicU64::new(0),
        });
        let listener = TcpListener::bind(("127.0.0.1", 0)).await;
        let listener = listener.expect("a free port");
        let address = listener.local_addr().expect("a bound socket");
        let running = run(&shared, listener);
        Self {
            shared,
            address,
            running: Some(running),
        }
    }

    /// Where it is, also while it is down.
    pub fn address(&self) -> String {
        self.address.to_string()
    }

    /// Goes down: every connection breaks, and nobody can connect.
    pub fn go_down(&mut self) {
        self.running = None;
    }

    /// Comes up again at the same address, with all that it had taken.
    pub async fn come_up(&mut self) {
        while self.running.is_none() {
            match TcpListener::bind(self.address).await {
                Ok(listener) => self.running = Some(run(&self.shared, listener)),
                // Connections of before may hold the port for a moment.
                Err(_) => tokio::time::sleep(Duration::from_millis(20)).await,
            }
        }
    }

    /// Sets how it treats those who talk to it.
    pub fn set_mood(&self, mood: Mood) {
        self.conduct(|conduct| conduct.mood = mood);
        self.shared.news.notify_waiters();
    }

    /// Sets how often something goes wrong.
    pub fn set_rates(&self, rates: Rates) {
        self.conduct(|conduct| conduct.rates = rates);
    }

    /// Sets how long a publish takes.
    pub fn set_delay(&self, delay: Duration) {
        self.conduct(|conduct| conduct.delay = delay);
    }

    /// Sets how long a connection may hold a message before it is closed. It is 5 s unless set.
    pub fn set_patience(&self, patience: Duration) {
        self.conduct(|conduct| conduct.patience = patience);
    }

    /// How many publishes failed on purpose.
    pub fn refusals(&self) -> u64 {
        self.shared.refusals.load(Ordering::SeqCst)
    }

    /// How many publishes took the time that was set.
    pub fn slow_publishes(&self) -> u64 {
        self.shared.slow_publishes.load(Ordering::SeqCst)
    }

    /// How many messages were published once more or delivered once more.
    pub fn repeats(&self) -> u64 {
        let queue = self.shared.queue.lock().expect("nothing panics here");
        queue.republished + queue.redelivered
    }

    fn conduct(&self, change: impl FnOnce(&mut Conduct)) {
        change(&mut self.shared.conduct.lock().expect("nothing panics here"));
    }
}

fn run(shared: &Arc<Shared>, listener: TcpListener) -> DropGuard {
    let up = CancellationToken::new();
    tokio::spawn(serve(Arc::clone(shared), listener, up.clone()));
    tokio::spawn(sweep(Arc::clone(shared), up.clone()));
    up.drop_guard()
}
