//! The command line.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use outbox_servers::Kind;

/// The tasks of this workspace.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) task: Task,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Task {
    /// Runs all tests against throw-away servers, then checks the book
    Test(TestOptions),
    /// Runs what continuous integration runs: formatting, lints, docs, licences, features, all tests
    Ci,
    /// Checks the architecture rules: layers, pure domain, SQL in its place, file length
    Tidy,
    /// Builds the book and checks its listings and links
    Book,
    /// Runs the fault matrix: each fault on each database and broker, with exact counts of what it
    /// came to
    Faults(FaultsOptions),
    /// Lets random faults strike under load for some minutes, and counts
    Soak(SoakOptions),
    /// Measures the framework beside hand-written code and its peers, on a server of its own
    Bench(BenchOptions),
    /// Runs order-fulfilment-distributed, kills its processes at random, and checks the books
    Demo(DemoOptions),
    /// Starts the throw-away servers and runs a command beside them, or waits for Ctrl-C
    Servers(ServersOptions),
}

#[derive(Debug, Args)]
pub(crate) struct TestOptions {
    /// Fail when a server or tool is missing instead of listing it as not exercised
    #[arg(long)]
    pub(crate) require_all: bool,

    /// Never install a missing server or tool
    #[arg(long)]
    pub(crate) no_install: bool,

    /// Run only the tests whose name contains one of these (and leave out tidy and the book)
    pub(crate) filter: Vec<String>,
}

/// What the matrix and a soak have in common.
#[derive(Debug, Args)]
pub(crate) struct RunOptions {
    /// Only on this database
    #[arg(long, value_enum)]
    pub(crate) database: Option<Database>,

    /// The same dice as in an earlier run (the dice, not the scheduler)
    #[arg(long)]
    pub(crate) seed: Option<u64>,

    /// Print a JSON object a run instead of a table
    #[arg(long)]
    pub(crate) json: bool,

    /// Fail when something could not be tried instead of listing it as not exercised
    #[arg(long)]
    pub(crate) require_all: bool,

    /// Never install a missing server or library
    #[arg(long)]
    pub(crate) no_install: bool,
}

#[derive(Debug, Args)]
pub(crate) struct FaultsOptions {
    /// Only cells with this in their name, such as `poison`, `nats` or `kafka: killed`; may be
    /// repeated. An unknown one lists those that there are
    #[arg(long, value_name = "CELL")]
    pub(crate) only: Vec<String>,

    /// Only list the cells
    #[arg(long)]
    pub(crate) list: bool,

    /// At least so many messages a run; unless told, each fault has its own number
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) messages: Option<u32>,

    /// Let the workers break a promise, to see that the matrix sees it
    #[arg(long, value_enum)]
    pub(crate) sabotage: Option<Sabotage>,

    #[command(flatten)]
    pub(crate) run: RunOptions,
}

#[derive(Debug, Args)]
pub(crate) struct SoakOptions {
    /// How long, on each database
    #[arg(long, default_value_t = 10.0, value_parser = minutes)]
    pub(crate) minutes: f64,

    #[command(flatten)]
    pub(crate) run: RunOptions,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Database {
    Sqlite,
    Postgres,
}

impl Database {
    /// Its name for the program `faults`.
    pub(crate) const fn key(self) -> &'static str {
        match self {
            Self::Sqlite => "sqlite",
            Self::Postgres => "postgres",
        }
    }
}

/// A promise that the workers break.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Sabotage {
    /// Handlers take inbox rows away, so that repetitions have effects
    ForgetsInboxRows,
    /// The publisher confirms messages that it never sent
    DropsMessages,
    /// The publisher sends messages of one aggregate in the wrong order
    SwapsMessages,
    /// Writers change aggregates without their events
    HalfCommits,
    /// The publisher confirms what it was given, whether the broker answers or not
    ConfirmsOnHope,
    /// Consumers acknowledge messages before they handle them
    AcksBeforeCommit,
}

impl Sabotage {
    /// Its name for the program `faults`.
    pub(crate) const fn key(self) -> &'static str {
        match self {
            Self::ForgetsInboxRows => "forgets-inbox-rows",
            Self::DropsMessages => "drops-messages",
            Self::SwapsMessages => "swaps-messages",
            Self::HalfCommits => "half-commits",
            Self::ConfirmsOnHope => "confirms-on-hope",
            Self::AcksBeforeCommit => "acks-before-commit",
        }
    }
}

fn minutes(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(minutes) if (0.01..=10_000.0).contains(&minutes) => Ok(minutes),
        _ => Err("the minutes have to be a number between 0.01 and 10000".to_owned()),
    }
}

#[derive(Debug, Args)]
pub(crate) struct BenchOptions {
    /// Only this section; may be repeated. An unknown one lists those that there are
    #[arg(long, value_name = "SECTION")]
    pub(crate) only: Vec<String>,

    /// How many rounds each pair is measured; 5 unless told, 2 with --quick, of peers 1
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=100))]
    pub(crate) rounds: Option<u16>,

    /// Smaller tables, fewer and shorter rounds, no compiler: a first look
    #[arg(long)]
    pub(crate) quick: bool,

    /// Print a JSON object a pair instead of a table
    #[arg(long)]
    pub(crate) json: bool,

    /// Draw the ratios and the curves as an SVG
    #[arg(long, value_name = "FILE")]
    pub(crate) plot: Option<PathBuf>,

    /// Leave out the peers, which are crates of others with dependencies of their own
    #[arg(long)]
    pub(crate) no_peers: bool,

    /// Never install a missing server
    #[arg(long)]
    pub(crate) no_install: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ServersOptions {
    /// Only this server; may be repeated
    #[arg(long, value_enum, value_name = "SERVER")]
    pub(crate) only: Vec<ServerName>,

    /// Never install a missing server
    #[arg(long)]
    pub(crate) no_install: bool,

    /// The command to run, with the servers' addresses in its environment
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    pub(crate) command: Vec<String>,
}

#[derive(Debug, Args)]
pub(crate) struct DemoOptions {
    /// The broker between the services
    #[arg(long, value_enum, default_value = "nats")]
    pub(crate) broker: BrokerName,

    /// How many orders are placed
    #[arg(long, value_name = "N", default_value_t = 300, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub(crate) orders: u32,

    /// How often a random process is killed by `kill -9` while they are fulfilled
    #[arg(long, value_name = "K", default_value_t = 8, value_parser = clap::value_parser!(u32).range(0..=1_000))]
    pub(crate) kills: u32,

    /// Kill nothing, not even the broker
    #[arg(long)]
    pub(crate) no_kill: bool,

    /// The same orders and the same dice as in an earlier run (the dice, not the scheduler)
    #[arg(long)]
    pub(crate) seed: Option<u64>,

    /// Print what it came to as JSON, and nothing else
    #[arg(long)]
    pub(crate) json: bool,

    /// Keep the processes' logs in this folder
    #[arg(long, value_name = "FOLDER")]
    pub(crate) logs: Option<PathBuf>,

    /// Never install a missing server
    #[arg(long)]
    pub(crate) no_install: bool,
}

/// A broker, as it is named on the command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum BrokerName {
    Nats,
    Kafka,
    Rabbitmq,
    Redis,
}

impl BrokerName {
    pub(crate) const fn kind(self) -> Kind {
        match self {
            Self::Nats => Kind::Nats,
            Self::Kafka => Kind::Kafka,
            Self::Rabbitmq => Kind::RabbitMq,
            Self::Redis => Kind::Redis,
        }
    }
}

/// A kind of server, as it is named on the command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ServerName {
    Postgres,
    Nats,
    Rabbitmq,
    Redis,
    Kafka,
}

impl ServerName {
    pub(crate) const fn kind(self) -> Kind {
        match self {
            Self::Postgres => Kind::Postgres,
            Self::Nats => Kind::Nats,
            Self::Rabbitmq => Kind::RabbitMq,
            Self::Redis => Kind::Redis,
            Self::Kafka => Kind::Kafka,
        }
    }
}
