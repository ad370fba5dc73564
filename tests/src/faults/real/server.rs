use outbox_servers::{Kind, Server, Setup};

use crate::faults::NotExercised;
use crate::faults::arena::own_server;

/// The brokers that there are cells for, with the names that the command line has for them.
pub const BROKERS: [(&str, Kind); 4] = [
    ("nats", Kind::Nats),
    ("kafka", Kind::Kafka),
    ("rabbitmq", Kind::RabbitMq),
    ("redis", Kind::Redis),
];

/// A broker's server of the matrix's own, so that nobody else notices what happens to it.
///
/// All calls block.
pub struct BrokerServer {
    server: Server,
    key: &'static str,
}

impl BrokerServer {
    /// Starts the broker of that name.
    ///
    /// # Errors
    /// [`NotExercised`] if this machine or this program does not have it.
    ///
    /// # Panics
    /// If it is there and does not serve, or there is no broker of that name.
    pub fn start(key: &str) -> Result<Self, NotExercised> {
        let named = BROKERS.into_iter().find(|(name, _)| *name == key);
        let (key, kind) = named.expect("a broker that there is");
        if !is_built_in(kind) {
            let why = format!("this program was built without the feature `{key}`");
            return Err(NotExercised(why));
        }
        let server = own_server(kind, Setup::default())?;
        Ok(Self { server, key })
    }

    /// Its name on the command line.
    pub fn key(&self) -> &'static str {
        self.key
    }

    /// Where it is, also while it is down, with what makes its clients miss the dead soon.
    pub fn url(&self) -> String {
        let url = self.server.url();
        let parameters = match self.server.kind() {
            // The least that servers take unless they are told otherwise.
            Kind::Kafka => {
                "?session.timeout.ms=6000&heartbeat.interval.ms=500&max.poll.interval.ms=6000"
            }
            Kind::RabbitMq => "?heartbeat=2",
            _ => "",
        };
        format!("{url}{parameters}")
    }

    /// Whether a group gets only what is published after its first member came.
    pub(super) fn forgets_before_the_first_member(&self) -> bool {
        self.server.kind() == Kind::RabbitMq
    }

    /// Whether a member of a group that is dead or silent loses its part to others. The Kafka server
    /// of the tests waits for one for ever, also when its session is over.
    pub(super) fn misses_silent_members(&self) -> bool {
        self.server.kind() != Kind::Kafka
    }

    /// Kills it, or ends it in good order if it would lose what it confirmed otherwise.
    pub fn go_down(&mut self) {
        match self.server.kind().keeps_confirmed_when_killed() {
            true => self.server.kill(),
            false => self.server.stop(),
        }
    }

    /// Starts it again with what it had taken.
    ///
    /// # Panics
    /// If it does not serve.
    pub fn come_up(&mut self) {
        self.server.resume();
        self.server.run().expect("a server that ran before");
    }

    /// Stops it where it is: connections stay and nothing answers.
    pub fn freeze(&self) {
        self.server.pause();
    }

    /// Lets it go on.
    pub fn thaw(&self) {
        self.server.resume();
    }
}

const fn is_built_in(kind: Kind) -> bool {
    match kind {
        Kind::Nats => cfg!(feature = "nats"),
        Kind::Kafka => cfg!(feature = "kafka"),
        Kind::RabbitMq => cfg!(feature = "rabbitmq"),
        Kind::Redis => cfg!(feature = "redis"),
        Kind::Postgres => false,
    }
}
