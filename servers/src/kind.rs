//! The kinds of server that there are.

use std::fmt;
use std::path::PathBuf;

use crate::StartError;
use crate::recipes;

/// What a server is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kind {
    /// PostgreSQL, by its own binaries.
    Postgres,
    /// `nats-server` with JetStream on files.
    Nats,
    /// RabbitMQ without plugins, with an `epmd` of its own.
    RabbitMq,
    /// `redis-server` that appends each command to its file before it answers.
    Redis,
    /// A server that speaks Kafka's protocol: `noida-db` from PyPI.
    Kafka,
}

impl Kind {
    /// All of them.
    pub const ALL: [Self; 5] = [
        Self::Postgres,
        Self::Nats,
        Self::RabbitMq,
        Self::Redis,
        Self::Kafka,
    ];

    /// The server's name for people.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Postgres => "PostgreSQL",
            Self::Nats => "NATS",
            Self::RabbitMq => "RabbitMQ",
            Self::Redis => "Redis",
            Self::Kafka => "Kafka",
        }
    }

    /// The environment variable that tells the tests its address.
    #[must_use]
    pub const fn variable(self) -> &'static str {
        match self {
            Self::Postgres => "OUTBOX_TEST_POSTGRES_URL",
            Self::Nats => "OUTBOX_TEST_NATS_URL",
            Self::RabbitMq => "OUTBOX_TEST_RABBITMQ_URL",
            Self::Redis => "OUTBOX_TEST_REDIS_URL",
            Self::Kafka => "OUTBOX_TEST_KAFKA_URL",
        }
    }

    /// Whether what was confirmed is still there after [`kill`](crate::Server::kill) and
    /// [`run`](crate::Server::run).
    ///
    /// Not with Kafka: `noida-db` 0.2.3 holds its data in memory and writes all of it to a file
    /// once or twice a second. A kill takes what it confirmed since then, gives its offsets a second
    /// time, and an idempotent producer of before ends with a fatal error (out of order). A test that
    /// counts what Kafka kept uses [`stop`](crate::Server::stop), which writes the file, or lets two
    /// seconds pass between the last publish and the kill.
    #[must_use]
    pub const fn keeps_confirmed_when_killed(self) -> bool {
        !matches!(self, Self::Kafka)
    }

    /// The program that would be started. Where there is none, a server may yet start in a
    /// container.
    ///
    /// # Errors
    /// [`StartError::NotInstalled`] with what was looked for.
    pub fn program(self) -> Result<PathBuf, StartError> {
        recipes::of(self)
            .find()
            .map_err(|why| StartError::NotInstalled { kind: self, why })
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
