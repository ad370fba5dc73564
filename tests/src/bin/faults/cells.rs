//! The cells of the matrix, and which of them are wanted.

#[cfg(feature = "brokers")]
use outbox_tests::faults::real::{BROKERS, BrokerFault, BrokerServer};
use outbox_tests::faults::{Fault, FaultDb};
use sqlx::{Postgres, Sqlite};

use crate::director::Options;
use crate::report::{CellName, HARNESS, Run};

/// A fault somewhere.
pub(crate) enum Cell {
    /// With the harness's broker, on SQLite.
    Sqlite(Fault),
    /// With the harness's broker, on PostgreSQL.
    Postgres(Fault),
    /// With a real broker, on PostgreSQL.
    #[cfg(feature = "brokers")]
    Broker(BrokerFault, &'static str),
}

impl Cell {
    /// All of them, those of one real broker together.
    pub(crate) fn all() -> Vec<Self> {
        let faults = Fault::all().into_iter();
        let all = faults.flat_map(|fault| [Self::Sqlite(fault), Self::Postgres(fault)]);
        #[cfg(feature = "brokers")]
        let all = all.chain(
            BROKERS
                .into_iter()
                .flat_map(|(broker, _)| BrokerFault::ALL.map(|fault| Self::Broker(fault, broker))),
        );
        all.collect()
    }

    /// Place and fault, as the command line has them: `sqlite: poison`, `kafka: broker-killed`.
    pub(crate) fn id(&self) -> String {
        let name = self.name();
        let place = match name.broker {
            HARNESS => name.database,
            broker => broker,
        };
        format!("{place}: {}", name.fault)
    }

    /// Whether the options want it.
    pub(crate) fn is_wanted(&self, options: &Options) -> bool {
        let id = self.id();
        let database = self.name().database;
        let is_on = options.database.as_deref().is_none_or(|on| on == database);
        let only = &options.only;
        is_on && (only.is_empty() || only.iter().any(|part| id.contains(part.as_str())))
    }

    fn name(&self) -> CellName {
        let (fault, database, broker) = match self {
            Self::Sqlite(fault) => (fault.name(), Sqlite::KEY, HARNESS),
            Self::Postgres(fault) => (fault.name(), Postgres::KEY, HARNESS),
            #[cfg(feature = "brokers")]
            Self::Broker(fault, broker) => (fault.name(), Postgres::KEY, *broker),
        };
        CellName {
            fault,
            database,
            broker,
        }
    }

    fn messages(&self) -> u32 {
        match self {
            Self::Sqlite(fault) | Self::Postgres(fault) => fault.messages(),
            #[cfg(feature = "brokers")]
            Self::Broker(fault, _) => fault.messages(),
        }
    }

    /// Tries it; whether nothing was wrong.
    pub(crate) async fn run(&self, options: &Options, brokers: &mut Brokers) -> bool {
        let messages = options.messages.unwrap_or(self.messages());
        let run = Run::new(self.name(), messages, options);
        let settings = run.settings.clone();
        #[cfg(not(feature = "brokers"))]
        let _ = brokers;
        let watcher = |standing| run.progress(standing);
        run.end(match self {
            Self::Sqlite(fault) => fault.run::<Sqlite>(settings, &watcher).await,
            Self::Postgres(fault) => fault.run::<Postgres>(settings, &watcher).await,
            #[cfg(feature = "brokers")]
            Self::Broker(fault, broker) => match brokers.get(broker) {
                Ok(server) => fault.run(server, settings, &watcher).await,
                Err(why) => Err(why.clone()),
            },
        })
    }
}

/// The real broker that was asked for last, if any.
#[derive(Default)]
pub(crate) struct Brokers {
    #[cfg(feature = "brokers")]
    last: Option<Started>,
}

/// A broker, or why there is none.
#[cfg(feature = "brokers")]
type Started = (
    &'static str,
    Result<BrokerServer, outbox_tests::faults::NotExercised>,
);

#[cfg(feature = "brokers")]
impl Brokers {
    /// The broker of that name; another one ends.
    fn get(
        &mut self,
        key: &'static str,
    ) -> Result<&mut BrokerServer, &outbox_tests::faults::NotExercised> {
        if self.last.as_ref().is_none_or(|(last, _)| *last != key) {
            self.last = None;
        }
        let (_, started) = self
            .last
            .get_or_insert_with(|| (key, BrokerServer::start(key)));
        started.as_mut().map_err(|why| &*why)
    }
}
