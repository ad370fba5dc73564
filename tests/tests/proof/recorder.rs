use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use fastrand::Rng;
use outbox_runtime::broker::{PublishError, Publisher};
use outbox_runtime::{Message, MessageId};

use crate::dice::{pause, per_mille};

type Key = (String, String);

/// A broker that takes note of what arrives, and from time to time refuses a message or loses its
/// own answer. Clones are the same broker.
#[derive(Clone)]
pub(crate) struct Recorder {
    state: Arc<Mutex<State>>,
    faults: Faults,
}

/// How often something goes wrong, in a thousand.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Faults {
    /// A message is refused.
    pub(crate) refused: u32,
    /// A call's messages are taken and the answer is lost.
    pub(crate) lost_answers: u32,
}

struct State {
    dice: Rng,
    seen: HashSet<MessageId>,
    repetitions: usize,
    /// Aggregate, sequence and message in the order of first arrival.
    arrivals: Vec<Arrival>,
    /// Ordering keys in a call at this moment.
    busy: HashMap<Key, usize>,
    overlaps: usize,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Arrival {
    pub(crate) aggregate_id: String,
    pub(crate) sequence: i64,
    pub(crate) message_id: MessageId,
}

impl Recorder {
    pub(crate) fn new(mut dice: Rng, faults: Faults) -> Self {
        let state = State {
            dice: dice.fork(),
            seen: HashSet::new(),
            repetitions: 0,
            arrivals: Vec::new(),
            busy: HashMap::new(),
            overlaps: 0,
        };
        Self {
            state: Arc::new(Mutex::new(state)),
            faults,
        }
    }

    /// The same broker when all is well.
    pub(crate) fn without_faults(&self) -> Self {
        Self {
            state: Arc::clone(&self.state),
            faults: Faults::default(),
        }
    }

    /// How many different messages arrived.
    pub(crate) fn distinct(&self) -> usize {
        self.state.lock().unwrap().seen.len()
    }

    /// How many arrivals were repetitions.
    pub(crate) fn repetitions(&self) -> usize {
        self.state.lock().unwrap().repetitions
    }

    /// How often an ordering key was in two calls at a time.
    pub(crate) fn overlaps(&self) -> usize {
        self.state.lock().unwrap().overlaps
    }

    /// Whether it arrived.
    pub(crate) fn has(&self, message: MessageId) -> bool {
        self.state.lock().unwrap().seen.contains(&message)
    }

    /// The first arrivals, in their order.
    pub(crate) fn arrivals(&self) -> Vec<Arrival> {
        self.state.lock().unwrap().arrivals.clone()
    }

    /// The sequences of each aggregate in the order of their first arrival.
    pub(crate) fn sequences(&self) -> BTreeMap<String, Vec<i64>> {
        let mut sequences: BTreeMap<String, Vec<i64>> = BTreeMap::new();
        for arrival in self.arrivals() {
            let of_one = sequences.entry(arrival.aggregate_id).or_default();
            of_one.push(arrival.sequence);
        }
        sequences
    }

    fn dice(&self) -> Rng {
        self.state.lock().unwrap().dice.fork()
    }

    /// Takes what is not refused, in order.
    fn take(&self, messages: &[Message], dice: &mut Rng) -> Vec<Result<(), PublishError>> {
        let mut state = self.state.lock().unwrap();
        let mut failed = HashSet::new();
        let mut results = Vec::new();
        for message in messages {
            let key = message.metadata.ordering_key();
            if failed.contains(&key) {
                results.push(Err(PublishError::withheld()));
            } else if per_mille(dice, self.faults.refused) {
                failed.insert(key);
                results.push(Err(PublishError::transient("refused by chance")));
            } else {
                state.note(message);
                results.push(Ok(()));
            }
        }
        results
    }
}

impl State {
    fn note(&mut self, message: &Message) {
        let metadata = &message.metadata;
        if !self.seen.insert(metadata.message_id) {
            self.repetitions += 1;
            return;
        }
        if let Some(aggregate) = &metadata.aggregate {
            self.arrivals.push(Arrival {
                aggregate_id: aggregate.aggregate_id.clone(),
                sequence: aggregate.sequence,
                message_id: metadata.message_id,
            });
        }
    }
}

#[async_trait]
impl Publisher for Recorder {
    async fn publish(&self, messages: &[Message]) -> Vec<Result<(), PublishError>> {
        let _busy = Busy::mark(&self.state, messages);
        let mut dice = self.dice();
        pause(&mut dice, 1_500).await;
        let results = self.take(messages, &mut dice);
        // Who is stopped here has sent its messages and does not know.
        pause(&mut dice, 1_500).await;
        if per_mille(&mut dice, self.faults.lost_answers) {
            let lost = |_| Err(PublishError::transient("the answer was lost"));
            return messages.iter().map(lost).collect();
        }
        results
    }
}

/// Marks ordering keys as busy for as long as a call lasts, dropped ones too.
struct Busy {
    state: Arc<Mutex<State>>,
    keys: HashSet<Key>,
}

impl Busy {
    fn mark(state: &Arc<Mutex<State>>, messages: &[Message]) -> Self {
        let keys: HashSet<Key> = messages
            .iter()
            .map(|message| message.metadata.ordering_key())
            .collect();
        let mut locked = state.lock().unwrap();
        for key in &keys {
            let calls = locked.busy.entry(key.clone()).or_default();
            *calls += 1;
            let overlaps = *calls > 1;
            locked.overlaps += usize::from(overlaps);
        }
        drop(locked);
        Self {
            state: Arc::clone(state),
            keys,
        }
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        let mut state = self.state.lock().unwrap();
        for key in &self.keys {
            let calls = state.busy.get_mut(key).unwrap();
            *calls -= 1;
            if *calls == 0 {
                state.busy.remove(key);
            }
        }
    }
}
