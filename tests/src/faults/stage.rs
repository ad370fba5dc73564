use std::path::PathBuf;
use std::time::{Duration, Instant};

use super::accounts::open_accounts;
use super::arena::Arena;
use super::books::{self, Standing};
use super::broker::Broker;
use super::database::FaultDb;
use super::logs::Logs;
use super::plan::{BrokerAddress, Plan, Sabotage};
use super::verdict::Verdict;
use super::wire::Wire;
use super::worker::{Start, Worker};
use fastrand::Rng;

/// How long nothing may go on before the wait for it is given up; no promise is about time.
pub const STANDSTILL: Duration = Duration::from_secs(60);
const LOOK: Duration = Duration::from_millis(50);

/// What a run is to be like.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The program of the workers.
    pub program: PathBuf,
    /// How many messages at least.
    pub messages: u32,
    /// The source of chance; the same seed throws the same dice.
    pub seed: u64,
    /// How long nothing may go on before the wait for it is given up.
    pub standstill: Duration,
    /// Which promise the workers break on purpose.
    pub sabotage: Option<Sabotage>,
}

/// Who is told how far a run has come.
pub type Watcher<'a> = dyn Fn(Standing) + Send + Sync + 'a;

/// A database, a broker and workers, on which a fault is tried.
pub struct Stage<'a, DB: FaultDb> {
    /// The database.
    pub arena: Arena<DB>,
    /// The harness's broker, which stands idle where the workers talk to a real one.
    pub broker: Broker,
    address: BrokerAddress,
    /// The workers.
    pub workers: Vec<Worker>,
    /// The source of chance.
    pub dice: Rng,
    /// What the run is to be like.
    pub settings: Settings,
    /// How often the fault struck.
    pub strikes: u64,
    /// How often it is to strike at least.
    pub enough_strikes: u64,
    /// What is not as it should be.
    pub problems: Vec<String>,
    /// A figure worth telling.
    pub remark: String,
    watcher: &'a Watcher<'a>,
    logs: Logs,
    peak_memory: u64,
    begun: Instant,
}

impl<'a, DB: FaultDb> Stage<'a, DB> {
    /// A stage with nobody on it yet.
    pub async fn set(arena: Arena<DB>, settings: Settings, watcher: &'a Watcher<'a>) -> Self {
        open_accounts(&arena.fixture.outbox).await;
        let broker = Broker::start().await;
        Self {
            address: BrokerAddress::Harness(broker.address()),
            broker,
            workers: Vec::new(),
            dice: Rng::with_seed(settings.seed),
            arena,
            strikes: 0,
            enough_strikes: u64::from(settings.messages / 60).clamp(3, 20),
            problems: Vec::new(),
            remark: String::new(),
            watcher,
            settings,
            logs: Logs::new(),
            peak_memory: 0,
            begun: Instant::now(),
        }
    }

    /// The same stage with a real broker, in a namespace of its own.
    #[must_use]
    pub fn at_broker(mut self, url: String) -> Self {
        self.address = BrokerAddress::Real {
            url,
            namespace: format!("f{}", uuid::Uuid::new_v4().simple()),
            member: Some(String::new()),
            wire: self.logs.of_the_wire(),
        };
        self
    }

    /// The plan of a worker with everything.
    pub fn plan(&self) -> Plan {
        Plan {
            sabotage: self.settings.sabotage,
            ..Plan::all(&self.arena.fixture.url, self.address.clone())
        }
    }

    /// Starts a worker and gives its number.
    pub fn start(&mut self, start: impl Into<Start>) -> usize {
        let number = self.workers.len();
        let worker = self.spawn(number, start.into());
        self.workers.push(worker);
        number
    }

    /// Kills a worker and starts its successor.
    pub fn kill(&mut self, number: usize) {
        self.workers[number].kill();
        self.strikes += 1;
        self.succeed(number);
    }

    /// Starts the successor of a worker that is no more, or is to be none.
    pub fn succeed(&mut self, number: usize) {
        self.workers[number].kill();
        self.peak_memory = self.peak_memory.max(self.workers[number].peak_memory);
        let start = self.workers[number].start.clone();
        self.workers[number] = self.spawn(number, start);
    }

    /// Whether enough was written while the fault struck often enough.
    pub async fn is_over(&mut self) -> bool {
        if self.begun.elapsed() > self.settings.standstill * 10 {
            let problem = format!("the fault struck only {} times", self.strikes);
            self.problems.push(problem + &self.logs.ends());
            return true;
        }
        let standing = self.look().await;
        let enough = i64::from(self.settings.messages);
        standing.is_some_and(|standing| standing.messages >= enough)
            && self.strikes >= self.enough_strikes
    }

    /// Waits between two times.
    pub async fn pause(&mut self, at_least: u64, at_most: u64) {
        let millis = self.dice.u64(at_least..=at_most);
        tokio::time::sleep(Duration::from_millis(millis)).await;
    }

    /// Waits until so many events are committed.
    pub async fn wait_for_messages(&mut self, messages: i64) {
        self.wait_until("the writers write", |standing| {
            standing.messages >= messages
        })
        .await;
    }

    /// Waits until so many effects are there.
    pub async fn wait_for_effects(&mut self, effects: i64) {
        self.wait_until("effects come", |standing| standing.effects >= effects)
            .await;
    }

    /// Ends the writing, waits until all has its effect, and lets the workers end in good order.
    pub async fn drain(&mut self) {
        self.drain_but_keep().await;
        self.dismiss().await;
    }

    /// Ends the writing and waits until all has its effect.
    pub async fn drain_but_keep(&mut self) {
        self.end_writing().await;
        // What is on its way into the database counts too, so the standing has to hold.
        let mut before = Standing::default();
        loop {
            self.wait_until("all has its effect", |standing| {
                standing.effects >= standing.messages
            })
            .await;
            let Some(now) = self.look().await else {
                continue;
            };
            if now == before || !self.problems.is_empty() {
                break;
            }
            before = now;
            tokio::time::sleep(Duration::from_millis(300)).await;
        }
    }

    /// Lets the workers end in good order.
    pub async fn dismiss(&mut self) {
        for worker in &mut self.workers {
            let is_gone = worker.ended().is_some();
            if is_gone || !worker.finish().await {
                self.problems.push(match is_gone {
                    true => "a worker ended by itself".to_owned(),
                    false => "a worker did not end in good order".to_owned(),
                });
            }
            self.peak_memory = self.peak_memory.max(worker.peak_memory);
        }
        self.workers.clear();
    }

    /// Lets the writers write no more.
    pub async fn end_writing(&mut self) {
        self.command("UPDATE control SET writing = 0").await;
    }

    /// Runs SQL on the database as soon as that is possible.
    pub async fn command(&mut self, sql: &str) {
        let since = Instant::now();
        while let Err(error) = DB::try_run(&self.arena.fixture.pool, sql).await {
            if since.elapsed() > self.settings.standstill {
                self.problems.push(format!("{sql}: {error}"));
                return;
            }
            tokio::time::sleep(LOOK).await;
        }
    }

    /// Waits for a standing, for as long as something goes on.
    pub async fn wait_until(&mut self, what: &str, is_so: impl Fn(Standing) -> bool) {
        let (mut last, mut since) = (Standing::default(), Instant::now());
        loop {
            if let Some(standing) = self.look().await {
                if is_so(standing) {
                    return;
                }
                if standing != last {
                    (last, since) = (standing, Instant::now());
                }
            }
            if since.elapsed() > self.settings.standstill {
                let problem = format!("waited in vain until {what}: {last:?}");
                self.problems.push(problem + &self.logs.ends());
                return;
            }
            tokio::time::sleep(LOOK).await;
        }
    }

    /// How often the workers logged a line with that text.
    pub fn count_in_logs(&self, text: &str) -> u64 {
        self.logs.count(text)
    }

    /// How far the work has come, if the database answers.
    pub async fn look(&mut self) -> Option<Standing> {
        let standing = books::standing(&self.arena.fixture.pool).await.ok()?;
        (self.watcher)(standing);
        Some(standing)
    }

    /// Counts. The workers are to be gone.
    pub async fn verdict(mut self) -> Verdict {
        if self.strikes == 0 {
            self.problems.push("the fault never struck".to_owned());
        }
        self.problems.extend(books::dead(&self.arena.fixture).await);
        let repeats = match &self.address {
            BrokerAddress::Harness(_) => self.broker.repeats(),
            BrokerAddress::Real { wire, .. } => {
                let traffic = Wire::at(wire).read();
                let invented = books::uncommitted(&self.arena.fixture, &traffic.offered).await;
                if invented > 0 {
                    let problem = format!("{invented} messages were published and never committed");
                    self.problems.push(problem);
                }
                traffic.offered_again + traffic.came_again
            }
        };
        let counted = books::balance(&self.arena.fixture).await;
        Verdict {
            strikes: self.strikes,
            repeats,
            problems: self.problems,
            remark: self.remark,
            millis: u64::try_from(self.begun.elapsed().as_millis()).unwrap_or(u64::MAX),
            peak_memory: self.peak_memory,
            ..counted
        }
    }

    fn spawn(&self, number: usize, mut start: Start) -> Worker {
        if let BrokerAddress::Real { member, .. } = &mut start.plan.broker {
            *member = member.as_ref().map(|_| format!("worker-{number}"));
        }
        Worker::spawn(&self.settings.program, start, &self.logs.of(number))
    }
}
