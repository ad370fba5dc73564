//! How each kind of server is found and run. A new kind is a file here and a line in [`of`].

mod kafka;
mod nats;
mod postgres;
mod rabbitmq;
mod redis;

use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::process::Signal;

use crate::docker::Image;
use crate::host::Programs;
use crate::process::{Process, tied_to_us};
use crate::tls::Certificates;
use crate::{Kind, Setup};

/// How one kind of server is run.
pub(crate) trait Recipe: Sync {
    /// The program that is the server, or what is missing.
    fn find(&self) -> Result<PathBuf, String>;

    /// Whether it knows TLS and credentials.
    fn can_be_closed(&self) -> bool {
        true
    }

    /// Makes its data, before it runs for the first time.
    fn prepare(&self, _site: &Site) -> Result<(), String> {
        Ok(())
    }

    /// Starts its processes, the server itself last.
    fn launch(&self, site: &Site, processes: &mut Vec<Process>) -> Result<(), String>;

    /// Whether it serves.
    fn is_ready(&self, site: &Site) -> bool;

    /// Its address.
    fn url(&self, site: &Site) -> String;

    /// How to run it where there is only a container engine, as the default set-up wants it.
    fn image(&self, site: &Site) -> Image;

    /// Asks it to end in good order.
    fn stop_signal(&self) -> Signal {
        Signal::TERM
    }

    /// Has it write down what it confirmed before it is asked to end, where that needs a word of its
    /// own.
    fn before_stop(&self, _site: &Site) {}

    /// Whether it must end in good order also when nobody needs its data any more.
    fn leaves_traces(&self) -> bool {
        false
    }

    /// Removes what a killed one left outside of its folder.
    fn clear(&self, _site: &Site) {}
}

/// The recipe of a kind.
pub(crate) fn of(kind: Kind) -> &'static dyn Recipe {
    match kind {
        Kind::Postgres => &postgres::Postgres,
        Kind::Nats => &nats::Nats,
        Kind::RabbitMq => &rabbitmq::RabbitMq,
        Kind::Redis => &redis::Redis,
        Kind::Kafka => &kafka::Kafka,
    }
}

/// One server's place.
#[derive(Debug)]
pub(crate) struct Site {
    pub(crate) programs: Programs,
    pub(crate) folder: PathBuf,
    pub(crate) port: u16,
    pub(crate) setup: Setup,
    /// If it is to speak TLS.
    pub(crate) certificates: Option<Certificates>,
}

impl Site {
    /// The program that is the server, or Docker's.
    pub(crate) fn program(&self) -> &Path {
        match &self.programs {
            Programs::Installed(program) | Programs::Image(program) => program,
        }
    }

    /// A command of this server, which ends with us.
    fn command(&self, program: &Path, signal: &str) -> Command {
        let mut command = tied_to_us(program, signal);
        let environment = self.setup.environment.iter();
        command.envs(environment.map(|(name, value)| (name, value)));
        // Our own current folder may be closed to the server's user.
        command.current_dir(&self.folder);
        command
    }

    /// Starts a command; `name` is that of its log.
    fn spawn(&self, command: Command, name: &str) -> Result<Process, String> {
        Process::spawn(command, self.folder.join(format!("{name}.log")))
    }

    /// Writes a file and returns its path.
    fn write(&self, name: &str, text: &str) -> Result<PathBuf, String> {
        let file = self.folder.join(name);
        std::fs::write(&file, text)
            .map_err(|error| format!("cannot write {}: {error}", file.display()))?;
        Ok(file)
    }

    /// An address: one of two schemes, the user or what stands for nobody in particular, the port.
    fn address(&self, plain: &str, closed: &str, nobody: &str) -> String {
        let scheme = match self.certificates {
            Some(_) => closed,
            None => plain,
        };
        let user = match &self.setup.credentials {
            Some((user, password)) => format!("{}:{}@", encoded(user), encoded(password)),
            None => nobody.to_owned(),
        };
        format!("{scheme}://{user}127.0.0.1:{}", self.port)
    }
}

/// In double quotes, as all the servers' files want it.
fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

/// Percent-encoded for a URL.
fn encoded(text: &str) -> String {
    text.bytes()
        .map(|byte| match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => {
                char::from(byte).to_string()
            }
            other => format!("%{other:02X}"),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_are_escaped() {
        assert_eq!(quoted(r#"a"b\c"#), r#""a\"b\\c""#);
    }

    #[test]
    fn what_a_url_gives_a_meaning_is_encoded() {
        assert_eq!(encoded("a-Z_0.~"), "a-Z_0.~");
        assert_eq!(encoded("p@ss:/ä"), "p%40ss%3A%2F%C3%A4");
    }
}
