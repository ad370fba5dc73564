use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// The environment variable with a worker's plan, as JSON.
pub const PLAN: &str = "OUTBOX_FAULTS_PLAN";

/// What a worker process does.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Plan {
    /// Where the database is.
    pub url: String,
    /// Where the broker is.
    pub broker: BrokerAddress,
    /// Tasks that write until the control table says that it is enough; 0 for none.
    pub writers: usize,
    /// Aggregates that the writers share.
    pub accounts: usize,
    /// The longest rest of a writer between two units of work.
    pub rest: Duration,
    /// Whether it relays.
    pub relays: bool,
    /// Whether it consumes.
    pub consumes: bool,
    /// Whether it removes what is finished, all at once and again and again.
    pub cleans: bool,
    /// The relay's lease.
    pub lease: Duration,
    /// How long a publish may take.
    pub publish_timeout: Duration,
    /// How often relay and consumer look for something to do if nobody tells them.
    pub poll: Duration,
    /// How long a slow attempt of a handler lasts at least.
    pub handler_delay: Duration,
    /// How many attempts of handlers in a thousand last so long.
    pub handlers_are_slow: u32,
    /// How many seconds its wall clock is ahead, or behind.
    pub clock_shift: i64,
    /// How many attempts of handlers in a thousand fail, half of them before and half of them
    /// after their effect was written.
    pub handlers_fail: u32,
    /// How many attempts of handlers in a thousand panic, half of them after their effect was
    /// written.
    pub handlers_panic: u32,
    /// Whether handlers fail with the accounts in the table `poison`.
    pub minds_poison: bool,
    /// How the worker breaks a promise on purpose, to show that a test sees it.
    pub sabotage: Option<Sabotage>,
}

/// A broker that a worker talks to.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub enum BrokerAddress {
    /// The harness's, at that address.
    Harness(String),
    /// A real one.
    Real {
        /// Its URL, which says of what kind it is.
        url: String,
        /// What the run's topics, streams and queues begin with.
        namespace: String,
        /// What the broker may know the worker by, if it is to know its successor again.
        member: Option<String>,
        /// The file that tells what went to it and came from it.
        wire: PathBuf,
    },
}

/// A promise that is broken on purpose.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Sabotage {
    /// A handler takes its inbox row away again, so that a repetition has an effect too.
    ForgetsInboxRows,
    /// A publisher confirms some messages that it never sent.
    DropsMessages,
    /// A publisher sends some messages later than the next one of their aggregate.
    SwapsMessages,
    /// A writer changes an aggregate without an event, as a half commit would.
    HalfCommits,
    /// A publisher confirms whatever it was given, whether the broker answers or not.
    ConfirmsOnHope,
    /// A consumer acknowledges a message before it handles it.
    AcksBeforeCommit,
}

impl Plan {
    /// A worker with everything: writers, relay and handlers.
    pub fn all(url: &str, broker: BrokerAddress) -> Self {
        Self {
            url: url.to_owned(),
            broker,
            writers: 3,
            accounts: 40,
            rest: Duration::from_millis(12),
            relays: true,
            consumes: true,
            cleans: false,
            lease: Duration::from_millis(600),
            publish_timeout: Duration::from_millis(1500),
            poll: Duration::from_millis(50),
            handler_delay: Duration::ZERO,
            handlers_are_slow: 0,
            clock_shift: 0,
            handlers_fail: 0,
            handlers_panic: 0,
            minds_poison: false,
            sabotage: None,
        }
    }

    /// The same worker, which writes nothing.
    #[must_use]
    pub fn silent(mut self) -> Self {
        self.writers = 0;
        self
    }

    /// The same worker, which only writes.
    #[must_use]
    pub fn only_writes(mut self) -> Self {
        self.relays = false;
        self.consumes = false;
        self
    }

    /// The same worker, which only handles.
    #[must_use]
    pub fn only_consumes(mut self) -> Self {
        self.writers = 0;
        self.relays = false;
        self
    }

    /// The same worker, which neither writes nor handles.
    #[must_use]
    pub fn only_relays(mut self) -> Self {
        self.writers = 0;
        self.consumes = false;
        self
    }
}
