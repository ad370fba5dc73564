//! Where a server comes from that is not installed.

use std::path::{Path, PathBuf};

use crate::Kind;

/// The version of the Kafka server, as `requirements.txt` pins it.
const VERSION: &str = "0.2.3";

/// The program that serves Kafka's protocol.
pub(crate) const KAFKA_PROGRAM: &str = "noida-db";

/// What has to be installed for a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// Debian packages.
    Debian(&'static [&'static str]),
    /// What a requirements file of pip lists.
    Python {
        /// The file, with hashes.
        requirements: PathBuf,
        /// The folder, below the one for this workspace's tools, of the private environment that
        /// it belongs into. It has another name for each version.
        environment: String,
    },
}

impl Kind {
    /// What has to be installed for it.
    #[must_use]
    pub fn source(self) -> Source {
        match self {
            Self::Postgres => Source::Debian(&["postgresql"]),
            Self::Nats => Source::Debian(&["nats-server"]),
            Self::RabbitMq => Source::Debian(&["rabbitmq-server"]),
            Self::Redis => Source::Debian(&["redis-server"]),
            Self::Kafka => Source::Python {
                requirements: Path::new(env!("CARGO_MANIFEST_DIR")).join("requirements.txt"),
                environment: kafka_environment(),
            },
        }
    }
}

/// Where `cargo xtask` has put the Kafka server, if it has: below the folder that this program was
/// built into, or below the workspace's usual one.
pub(crate) fn installed_kafka() -> Option<PathBuf> {
    let program = Path::new("tools")
        .join(kafka_environment())
        .join("bin")
        .join(KAFKA_PROGRAM);
    let this = std::env::current_exe().unwrap_or_default();
    let target = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target");
    this.ancestors()
        .chain([target.as_path()])
        .map(|folder| folder.join(&program))
        .find(|file| file.is_file())
}

fn kafka_environment() -> String {
    format!("{KAFKA_PROGRAM}-{VERSION}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_requirements_pin_the_version_that_is_looked_for() {
        let pinned = format!("\n{KAFKA_PROGRAM}=={VERSION} ");
        assert!(include_str!("../requirements.txt").contains(&pinned));
    }
}
