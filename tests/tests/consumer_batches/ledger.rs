use super::*;

pub const SUM: &str = "batch.sum";
pub const COUNT: &str = "batch.count";
pub const ONCE_AN_ACCOUNT: &str = "batch.once";

/// A consumer's row changed.
#[domain_event(version = 1)]
pub struct Summed {
    pub lane: AccountId,
}

/// What a consumer knows of one lane.
#[aggregate(table = "sums", type_name = "Sum", events(Summed))]
pub struct Sum {
    id: AccountId,
    total: i64,
    last_sequence: i64,
    root: AggregateRoot,
}

pub trait LedgerDb: TestDatabase + Stores<Sum> {}

impl<DB: TestDatabase + Stores<Sum>> LedgerDb for DB {}

#[derive(Debug, thiserror::Error)]
pub enum SumError {
    #[error("poison")]
    Poison,
    #[error("thrown dice")]
    Dice,
    #[error("sequence {found} came after {last}")]
    Order { last: i64, found: i64 },
    #[error(transparent)]
    Store(#[from] outbox_runtime::Error),
}

impl Classify for SumError {
    fn failure_kind(&self) -> FailureKind {
        match self {
            Self::Poison => FailureKind::Permanent,
            Self::Dice | Self::Order { .. } => FailureKind::Transient,
            Self::Store(error) => error.failure_kind(),
        }
    }
}

/// What the handlers do, and what they saw.
#[derive(Clone, Default)]
pub struct Ledger(Arc<Mutex<Inner>>);

#[derive(Default)]
struct Inner {
    poison: HashSet<MessageId>,
    gate: Option<(MessageId, Arc<Semaphore>)>,
    is_at_gate: bool,
    /// Of a hundred attempts, so many fail or panic.
    faulty: u32,
    dice: fastrand::Rng,
    out_of_order: Vec<String>,
}

impl Ledger {
    /// Makes the table of the sums.
    pub async fn open<DB: LedgerDb>(fixture: &Fixture<DB>) -> Self {
        fixture
            .run_sql(
                "CREATE TABLE sums (id text PRIMARY KEY, total bigint NOT NULL, \
                 last_sequence bigint NOT NULL, version bigint NOT NULL)",
            )
            .await;
        Self::default()
    }

    /// Begins to consume.
    pub fn consume<DB: LedgerDb>(
        &self,
        fixture: &Fixture<DB>,
        options: ConsumerOptions,
        wanted: &'static [&'static str],
    ) -> (Postman, Running<DB>) {
        let mut states = States::default();
        states.insert(self.clone());
        let postman = Postman::new();
        let consumer = Consumer::new(fixture.outbox.clone(), postman.clone())
            .with_states(states)
            .with_options(options)
            .select_consumers(move |name| wanted.contains(&name));
        (postman, Running::start(consumer))
    }

    /// The message fails for good from now on.
    pub fn poison(&self, message: MessageId) {
        self.0.lock().unwrap().poison.insert(message);
    }

    pub fn cure(&self) {
        self.0.lock().unwrap().poison.clear();
    }

    /// Of a hundred attempts, so many fail or panic.
    pub fn fail(&self, percent: u32, seed: u64) {
        let mut inner = self.0.lock().unwrap();
        inner.faulty = percent;
        inner.dice = fastrand::Rng::with_seed(seed);
    }

    /// The message's handler waits at the gate.
    pub fn wait_at(&self, message: MessageId, gate: &Arc<Semaphore>) {
        self.0.lock().unwrap().gate = Some((message, Arc::clone(gate)));
    }

    pub fn is_at_gate(&self) -> bool {
        self.0.lock().unwrap().is_at_gate
    }

    pub fn open_gate(&self) {
        self.0.lock().unwrap().gate = None;
    }

    async fn play(&self, metadata: &Metadata) -> Result<(), SumError> {
        let gate = {
            let mut inner = self.0.lock().unwrap();
            if inner.poison.contains(&metadata.message_id) {
                return Err(SumError::Poison);
            }
            if inner.dice.u32(0..100) < inner.faulty {
                if inner.dice.bool() {
                    return Err(SumError::Dice);
                }
                drop(inner);
                std::panic::panic_any("thrown dice");
            }
            let gate = inner.gate.clone();
            gate.filter(|(message, _)| *message == metadata.message_id)
                .map(|(_, gate)| {
                    inner.is_at_gate = true;
                    gate
                })
        };
        if let Some(gate) = gate {
            gate.acquire().await.unwrap().forget();
        }
        Ok(())
    }

    /// Each message of the consumers had its effect once, and each lane's came in order.
    pub async fn balances<DB: LedgerDb>(
        &self,
        fixture: &Fixture<DB>,
        messages: &[Message],
        consumers: i64,
    ) {
        assert_eq!(self.0.lock().unwrap().out_of_order, Vec::<String>::new());
        let count = i64::try_from(messages.len()).unwrap();
        let totals = "SELECT CAST(coalesce(sum(total), 0) AS bigint) FROM sums";
        assert_eq!(fixture.number(totals).await, consumers * count);
        let changes = "SELECT CAST(coalesce(sum(version), 0) AS bigint) FROM sums";
        assert_eq!(fixture.number(changes).await, consumers * count);
        assert_eq!(consumer_support::inbox(fixture).await, consumers * count);
        assert_eq!(fixture.events().await, consumers * count);
    }
}

async fn add<DB: Stores<Sum>>(
    consumer: &str,
    event: &Envelope<Paid>,
    uow: &mut UnitOfWork<'_, DB>,
    ledger: &Ledger,
) -> Result<(), SumError> {
    let aggregate = event.metadata.aggregate.clone().unwrap();
    let lane = aggregate.aggregate_id;
    let id = AccountId::from(format!("{consumer}:{lane}"));
    let (found, known) = (aggregate.sequence, uow.find::<Sum>(&id).await?);
    let last = known.as_ref().map_or(0, |sum| sum.last_sequence);
    if found != last + 1 {
        let out_of_order = SumError::Order { last, found };
        ledger
            .0
            .lock()
            .unwrap()
            .out_of_order
            .push(format!("{id}: {out_of_order}"));
        return Err(out_of_order);
    }
    match known {
        Some(mut sum) => {
            sum.add(found, lane);
            uow.save(&mut sum).await?;
        }
        None => {
            let mut sum = Sum {
                id,
                total: 0,
                last_sequence: 0,
                root: AggregateRoot::default(),
            };
            sum.add(found, lane);
            uow.add(&mut sum).await?;
        }
    }
    ledger.play(&event.metadata).await
}

impl Sum {
    fn add(&mut self, sequence: i64, lane: String) {
        self.total += 1;
        self.last_sequence = sequence;
        self.raise(Summed {
            lane: AccountId::from(lane),
        });
    }
}

#[idempotent_handler(consumer = "batch.sum", key = "{message_id}")]
async fn sum<DB: Stores<Sum>>(
    event: Envelope<Paid>,
    uow: &mut UnitOfWork<'_, DB>,
    State(ledger): State<Ledger>,
) -> Result<(), SumError> {
    add(SUM, &event, uow, &ledger).await
}

#[idempotent_handler(consumer = "batch.count", key = "{message_id}")]
async fn count<DB: Stores<Sum>>(
    event: Envelope<Paid>,
    uow: &mut UnitOfWork<'_, DB>,
    State(ledger): State<Ledger>,
) -> Result<(), SumError> {
    add(COUNT, &event, uow, &ledger).await
}

#[idempotent_handler(consumer = "batch.once", key = "{event.account}")]
async fn once<DB: Backend>(
    event: Envelope<Paid>,
    uow: &mut UnitOfWork<'_, DB>,
) -> Result<(), outbox_runtime::Error> {
    let lane = event.account.clone();
    uow.raise(Summed { lane })
}

/// So many lanes with so many messages each, lane after lane in turn.
pub fn messages(lanes: i64, each: i64) -> Vec<Message> {
    (0..each)
        .flat_map(|n| {
            (0..lanes).map(move |lane| message(&paid("a", 1), &format!("lane-{lane}"), n + 1))
        })
        .collect()
}

/// Batches of at most so many messages, one at a time, so that the messages of a test come together.
pub fn batches(messages: usize) -> ConsumerOptions {
    options().concurrency(1).batch(messages)
}

pub async fn all_acknowledged(postman: &Postman, messages: &[Message]) {
    let answers: Vec<_> = messages.iter().map(|one| postman.deliver(one)).collect();
    for answer in answers {
        assert_eq!(answer.await.unwrap(), Answer::Acknowledged);
    }
}
