//! A server in a container, where there is an engine but no binary.

use std::path::PathBuf;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::{process, tools};

const PATIENCE: Duration = Duration::from_secs(60);

/// How a server runs in a container.
pub(super) struct Image {
    /// Image and tag.
    pub(super) name: &'static str,
    pub(super) environment: &'static [(&'static str, &'static str)],
    pub(super) arguments: &'static [&'static str],
    /// The port inside the container.
    pub(super) port: u16,
    /// A command inside the container that succeeds once the server serves.
    pub(super) ready: &'static [&'static str],
    /// The address for the tests, given the port on loopback.
    pub(super) url: fn(u16) -> String,
}

/// A container engine that answers.
pub(super) struct Engine {
    docker: PathBuf,
}

/// A running container; removed with its data when dropped.
pub(super) struct Container {
    docker: PathBuf,
    id: String,
}

impl Engine {
    /// Finds Docker; the error says what is missing.
    pub(super) fn find() -> Result<Self> {
        let docker = tools::find_in_path("docker").context("Docker is not installed")?;
        process::capture(Command::new(&docker).args([
            "version",
            "--format",
            "{{.Server.Version}}",
        ]))
        .map_err(|_| anyhow::anyhow!("no Docker engine answers"))?;
        Ok(Self { docker })
    }

    /// Runs an image, waits until it serves and returns its address.
    pub(super) fn run(&self, image: &Image) -> Result<(Container, String)> {
        let mut command = Command::new(&self.docker);
        command.args([
            "run",
            "--detach",
            "--publish",
            &format!("127.0.0.1::{}", image.port),
        ]);
        for (name, value) in image.environment {
            command.arg("--env").arg(format!("{name}={value}"));
        }
        let id = process::capture(command.arg(image.name).args(image.arguments))?;
        let container = Container {
            docker: self.docker.clone(),
            id: id.trim().to_owned(),
        };
        container.wait_until_ready(image)?;
        let port = container.published_port(image.port)?;
        Ok((container, (image.url)(port)))
    }
}

impl Container {
    fn wait_until_ready(&self, image: &Image) -> Result<()> {
        let start = Instant::now();
        loop {
            process::check_interrupted()?;
            match process::capture(self.docker(&["exec", &self.id]).args(image.ready)) {
                Ok(_) => return Ok(()),
                Err(error) if start.elapsed() > PATIENCE => {
                    return Err(error).with_context(|| format!("{} does not serve", image.name));
                }
                Err(_) => thread::sleep(Duration::from_millis(200)),
            }
        }
    }

    fn published_port(&self, port: u16) -> Result<u16> {
        let text = process::capture(&mut self.docker(&["port", &self.id, &port.to_string()]))?;
        match parse_port(&text) {
            Some(port) => Ok(port),
            None => bail!("cannot read the published port from {text:?}"),
        }
    }

    fn docker(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.docker);
        command.args(arguments);
        command
    }
}

impl Drop for Container {
    fn drop(&mut self) {
        if let Err(error) =
            process::capture(&mut self.docker(&["rm", "--force", "--volumes", &self.id]))
        {
            eprintln!("xtask: cannot remove the container {}: {error:#}", self.id);
        }
    }
}

/// Reads `127.0.0.1:49153`, one address a line.
fn parse_port(text: &str) -> Option<u16> {
    text.lines()
        .find_map(|line| line.rsplit(':').next()?.trim().parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_published_port_is_read_from_the_first_address() {
        assert_eq!(parse_port("127.0.0.1:49153\n"), Some(49153));
        assert_eq!(parse_port("[::1]:5000\n127.0.0.1:49153\n"), Some(5000));
        assert_eq!(parse_port("nothing\n"), None);
    }
}
