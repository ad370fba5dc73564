use std::collections::{BTreeMap, HashSet};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use outbox_runtime::broker::{PublishError, Publisher};
use outbox_runtime::{Message, MessageId};
use tokio::sync::watch;

type Judge = dyn Fn(&Message) -> Result<(), PublishError> + Send + Sync;

/// A broker that writes down what it takes. Clones are the same broker.
#[derive(Clone)]
pub struct RecordingPublisher {
    inner: Arc<Inner>,
}

struct Inner {
    taken: Mutex<Taken>,
    count: watch::Sender<usize>,
    judge: Mutex<Box<Judge>>,
    delay: Duration,
    calls: AtomicUsize,
    /// Ordering keys with a call at this moment.
    busy: Mutex<HashSet<(String, String)>>,
    overlaps: AtomicUsize,
    /// Whether calls never answer.
    is_silent: AtomicBool,
    load: Mutex<Load>,
}

/// What is out at this moment, and the most there was.
#[derive(Debug, Clone, Copy, Default)]
struct Load {
    calls: usize,
    bytes: usize,
    most_calls: usize,
    most_bytes: usize,
    most_messages: usize,
}

#[derive(Default)]
struct Taken {
    messages: Vec<Message>,
    distinct: HashSet<MessageId>,
}

impl RecordingPublisher {
    /// A broker that takes everything at once.
    pub fn new() -> Self {
        Self::with_delay(Duration::ZERO)
    }

    /// A broker that takes everything, each call after a while.
    pub fn with_delay(delay: Duration) -> Self {
        Self {
            inner: Arc::new(Inner {
                taken: Mutex::default(),
                count: watch::Sender::new(0),
                judge: Mutex::new(Box::new(|_| Ok(()))),
                delay,
                calls: AtomicUsize::new(0),
                busy: Mutex::default(),
                overlaps: AtomicUsize::new(0),
                is_silent: AtomicBool::new(false),
                load: Mutex::default(),
            }),
        }
    }

    /// From now on asks `judge` about each message.
    pub fn judge(
        &self,
        judge: impl Fn(&Message) -> Result<(), PublishError> + Send + Sync + 'static,
    ) {
        *self.inner.judge.lock().unwrap() = Box::new(judge);
    }

    /// From now on takes everything, and answers.
    pub fn accept(&self) {
        self.inner.is_silent.store(false, Ordering::SeqCst);
        self.judge(|_| Ok(()));
    }

    /// From now on takes nothing.
    pub fn go_down(&self) {
        self.judge(|_| Err(PublishError::transient("the broker is down")));
    }

    /// From now on takes calls and never answers them, as a network that drops every packet.
    pub fn fall_silent(&self) {
        self.inner.is_silent.store(true, Ordering::SeqCst);
    }

    /// How many calls are out.
    pub fn calls_out(&self) -> usize {
        self.inner.load.lock().unwrap().calls
    }

    /// The most calls that were out at a time.
    pub fn most_calls_out(&self) -> usize {
        self.inner.load.lock().unwrap().most_calls
    }

    /// The most bytes of payloads that were out at a time, in all calls.
    pub fn most_bytes_out(&self) -> usize {
        self.inner.load.lock().unwrap().most_bytes
    }

    /// The most messages of a call.
    pub fn most_messages_in_a_call(&self) -> usize {
        self.inner.load.lock().unwrap().most_messages
    }

    /// Begins to look for the most anew, from what is out now.
    pub fn forget_the_most(&self) {
        let mut load = self.inner.load.lock().unwrap();
        load.most_calls = load.calls;
        load.most_bytes = load.bytes;
        load.most_messages = 0;
    }

    /// How often it was called.
    pub fn calls(&self) -> usize {
        self.inner.calls.load(Ordering::SeqCst)
    }

    /// How often an ordering key was in two calls at a time.
    pub fn overlaps(&self) -> usize {
        self.inner.overlaps.load(Ordering::SeqCst)
    }

    /// All that it took, repetitions included.
    pub fn taken(&self) -> Vec<Message> {
        self.inner.taken.lock().unwrap().messages.clone()
    }

    /// Of each aggregate, the sequences it took in the order of their first arrival.
    pub fn sequences(&self) -> BTreeMap<String, Vec<i64>> {
        let mut seen = HashSet::new();
        let mut sequences: BTreeMap<String, Vec<i64>> = BTreeMap::new();
        for message in &self.inner.taken.lock().unwrap().messages {
            if let Some(aggregate) = &message.metadata.aggregate
                && seen.insert(message.metadata.message_id)
            {
                let of_one = sequences.entry(aggregate.aggregate_id.clone()).or_default();
                of_one.push(aggregate.sequence);
            }
        }
        sequences
    }

    /// How many different messages it took.
    pub fn distinct(&self) -> usize {
        self.inner.taken.lock().unwrap().distinct.len()
    }

    /// Waits until it took so many different messages.
    ///
    /// # Panics
    /// After a minute.
    pub async fn wait_for(&self, messages: usize) {
        let mut changes = self.inner.count.subscribe();
        let enough = async {
            while self.distinct() < messages {
                changes.changed().await.unwrap();
            }
        };
        let in_time = tokio::time::timeout(Duration::from_secs(60), enough).await;
        assert!(
            in_time.is_ok(),
            "{} of {messages} messages",
            self.distinct()
        );
    }

    fn take(&self, message: &Message) {
        let mut taken = self.inner.taken.lock().unwrap();
        taken.distinct.insert(message.metadata.message_id);
        taken.messages.push(message.clone());
    }

    /// Fails unless each aggregate's sequences came as 1, 2, 3 to `last`.
    ///
    /// # Panics
    /// If one is missing or out of order.
    pub fn assert_complete(&self, aggregates: usize, last: i64) {
        let sequences = self.sequences();
        assert_eq!(sequences.len(), aggregates);
        let expected: Vec<i64> = (1..=last).collect();
        for (aggregate, found) in sequences {
            assert_eq!(found, expected, "aggregate {aggregate}");
        }
    }
}

impl Default for RecordingPublisher {
    fn default() -> Self {
        Self::new()
    }
}

#[async_trait]
impl Publisher for RecordingPublisher {
    async fn publish(&self, messages: &[Message]) -> Vec<Result<(), PublishError>> {
        self.inner.calls.fetch_add(1, Ordering::SeqCst);
        let _busy = Busy::of(&self.inner, messages);
        if self.inner.is_silent.load(Ordering::SeqCst) {
            std::future::pending::<()>().await;
        }
        if !self.inner.delay.is_zero() {
            tokio::time::sleep(self.inner.delay).await;
        }
        let mut failed = HashSet::new();
        let mut results = Vec::new();
        for message in messages {
            let key = message.metadata.ordering_key();
            let result = if failed.contains(&key) {
                Err(PublishError::withheld())
            } else {
                (self.inner.judge.lock().unwrap())(message)
            };
            match result {
                Ok(()) => self.take(message),
                Err(_) => {
                    failed.insert(key);
                }
            }
            results.push(result);
        }
        self.inner
            .count
            .send_modify(|count| *count += messages.len());
        results
    }
}

/// Marks ordering keys as busy as long as a call lasts, dropped ones too.
struct Busy<'a> {
    inner: &'a Inner,
    keys: HashSet<(String, String)>,
    bytes: usize,
}

impl<'a> Busy<'a> {
    fn of(inner: &'a Inner, messages: &[Message]) -> Self {
        let mut keys: HashSet<_> = messages
            .iter()
            .map(|message| message.metadata.ordering_key())
            .collect();
        let mut busy = inner.busy.lock().unwrap();
        keys.retain(|key| {
            let free = busy.insert(key.clone());
            if !free {
                inner.overlaps.fetch_add(1, Ordering::SeqCst);
            }
            free
        });
        drop(busy);
        let bytes = messages.iter().map(|message| message.payload.len()).sum();
        let mut load = inner.load.lock().unwrap();
        load.calls += 1;
        load.bytes += bytes;
        load.most_calls = load.most_calls.max(load.calls);
        load.most_bytes = load.most_bytes.max(load.bytes);
        load.most_messages = load.most_messages.max(messages.len());
        drop(load);
        Self { inner, keys, bytes }
    }
}

impl Drop for Busy<'_> {
    fn drop(&mut self) {
        let mut load = self.inner.load.lock().unwrap();
        load.calls -= 1;
        load.bytes -= self.bytes;
        drop(load);
        let mut busy = self.inner.busy.lock().unwrap();
        busy.retain(|key| !self.keys.contains(key));
    }
}
