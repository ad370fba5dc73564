//! A server in a container, where there is an engine but no program.
//!
//! Nothing of this could be tried where it was written, since no engine ran there.

use std::path::PathBuf;
use std::process::Command;

use crate::command::{self, capture};

/// How a server runs in a container.
#[derive(Debug)]
pub(crate) struct Image {
    /// Image and tag.
    pub(crate) name: &'static str,
    pub(crate) environment: Vec<(&'static str, String)>,
    pub(crate) arguments: &'static [&'static str],
    /// The port inside the container.
    pub(crate) port: u16,
}

/// A container; removed with its data when dropped.
#[derive(Debug)]
pub(crate) struct Container {
    docker: PathBuf,
    id: String,
}

/// Docker, if its engine answers; the error says what is missing.
pub(crate) fn engine() -> Result<PathBuf, String> {
    let docker = command::find("docker").ok_or("Docker is not installed")?;
    let mut version = Command::new(&docker);
    version.args(["version", "--format", "{{.Server.Version}}"]);
    match capture(&mut version) {
        Ok(_) => Ok(docker),
        Err(_) => Err("no Docker engine answers".to_owned()),
    }
}

impl Container {
    /// Makes a container whose port is this one on loopback, and starts it.
    pub(crate) fn run(docker: PathBuf, image: &Image, port: u16) -> Result<Self, String> {
        let mut command = Command::new(&docker);
        command.args(["run", "--detach", "--publish"]);
        command.arg(format!("127.0.0.1:{port}:{}", image.port));
        for (name, value) in &image.environment {
            command.arg("--env").arg(format!("{name}={value}"));
        }
        command.arg(image.name).args(image.arguments);
        let id = capture(&mut command).map_err(|error| error.to_string())?;
        let id = id.trim().to_owned();
        Ok(Self { docker, id })
    }

    /// Starts it again, with its data.
    pub(crate) fn start(&self) -> Result<(), String> {
        self.tell(&["start"])
    }

    /// Ends it with SIGKILL.
    pub(crate) fn kill(&self) {
        let _ended_before = self.tell(&["kill"]);
    }

    /// Ends it in good order, or with SIGKILL after 10 seconds.
    pub(crate) fn stop(&self) {
        let _ended_before = self.tell(&["stop", "--time", "10"]);
    }

    /// Stops its processes where they are.
    pub(crate) fn pause(&self) {
        let _paused_before = self.tell(&["pause"]);
    }

    /// Lets them go on.
    pub(crate) fn resume(&self) {
        let _not_paused = self.tell(&["unpause"]);
    }

    /// Whether it has not ended.
    pub(crate) fn is_running(&self) -> bool {
        let format = ["inspect", "--format", "{{.State.Running}}", &self.id];
        capture(Command::new(&self.docker).args(format)).is_ok_and(|text| text.trim() == "true")
    }

    /// The last lines that it printed.
    pub(crate) fn log_end(&self) -> String {
        let logs = ["logs", "--tail", "20", &self.id];
        capture(Command::new(&self.docker).args(logs)).unwrap_or_default()
    }

    fn tell(&self, what: &[&str]) -> Result<(), String> {
        let mut command = Command::new(&self.docker);
        match capture(command.args(what).arg(&self.id)) {
            Ok(_) => Ok(()),
            Err(error) => Err(error.to_string()),
        }
    }
}

impl Drop for Container {
    fn drop(&mut self) {
        if let Err(error) = self.tell(&["rm", "--force", "--volumes"]) {
            eprintln!("cannot remove the container {}: {error}", self.id);
        }
    }
}
