use std::path::PathBuf;
use std::time::Duration;

use clap::{Parser, Subcommand, ValueEnum};
use order_fulfilment::BoundedContext;

use crate::broker::BrokerArgs;

/// Fulfils orders by events between three services, each with a database of its own.
///
/// Exit code: 0 when all is well, 1 when the books do not balance or an order was refused, 2 when a
/// process could not do its work (a bad URL, an unreachable database).
#[derive(Debug, Parser)]
#[command(name = "order-fulfilment-distributed", version)]
pub(crate) struct Args {
    #[command(subcommand)]
    pub(crate) command: Command,

    #[command(flatten)]
    pub(crate) broker: BrokerArgs,

    /// The PostgreSQL server, as an administrative database on it; each service makes one of its own
    #[arg(
        long,
        global = true,
        value_name = "URL",
        env = "FULFILMENT_DATABASE_URL",
        hide_env_values = true,
        default_value = "postgres://postgres@127.0.0.1:5432/postgres"
    )]
    pub(crate) database: String,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Runs a service: its handlers, on its own database
    Service(ServiceOptions),
    /// Relays the events of all three services to the broker
    Relay(RelayOptions),
    /// Places orders in the ordering service's database; those that are there are not placed again
    Place(PlaceOptions),
    /// Says how far everything is
    Status {
        /// As JSON
        #[arg(long)]
        json: bool,
    },
    /// Compares what the three databases hold
    Reconcile {
        /// As JSON
        #[arg(long)]
        json: bool,
    },
}

#[derive(Debug, clap::Args)]
pub(crate) struct ServiceOptions {
    /// Which one
    #[arg(value_enum)]
    pub(crate) name: ServiceName,

    /// Tells the processes of one service apart: each needs its own, and the same after a restart
    #[arg(long, value_name = "NAME", default_value = "1")]
    pub(crate) instance: String,

    /// For how long the work of a process that was killed stays its own, in seconds
    #[arg(long, value_name = "SECONDS", default_value = "5", value_parser = lease)]
    pub(crate) lease: Duration,
}

#[derive(Debug, clap::Args)]
pub(crate) struct RelayOptions {
    /// For how long the work of a relay that was killed stays its own, in seconds
    #[arg(long, value_name = "SECONDS", default_value = "5", value_parser = lease)]
    pub(crate) lease: Duration,
}

#[derive(Debug, clap::Args)]
pub(crate) struct PlaceOptions {
    /// The orders: a CSV file, or `-` for standard input [default: the included sample of 500 orders]
    #[arg(long, value_name = "FILE|-")]
    pub(crate) orders: Option<PathBuf>,

    /// At most so many orders a second; as fast as it goes unless told
    #[arg(long, value_name = "N", value_parser = per_second)]
    pub(crate) per_second: Option<f64>,
}

/// A service, as it is named on the command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ServiceName {
    Ordering,
    Inventory,
    Payment,
}

impl ServiceName {
    pub(crate) const fn context(self) -> BoundedContext {
        match self {
            Self::Ordering => BoundedContext::Ordering,
            Self::Inventory => BoundedContext::Inventory,
            Self::Payment => BoundedContext::Payment,
        }
    }
}

fn lease(text: &str) -> Result<Duration, String> {
    match text.parse() {
        Ok(seconds) if (0.3..=3600.0).contains(&seconds) => Ok(Duration::from_secs_f64(seconds)),
        _ => Err("a number of seconds from 0.3 to 3600 is needed, such as 5".to_owned()),
    }
}

fn per_second(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(rate) if (0.01..=1_000_000.0).contains(&rate) => Ok(rate),
        _ => Err("a number from 0.01 to 1000000 is needed, such as 20".to_owned()),
    }
}
