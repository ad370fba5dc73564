use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};
use async_trait::async_trait;
use serde::Deserialize;
use tokio::process::Command;

use crate::contest::Contestant;

/// Another system, run by a program of its own as it needs other versions of our dependencies.
pub(super) struct Peer {
    program: PathBuf,
    system: System,
    url: String,
    rows: i64,
}

/// What the program tells of a system.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct System {
    system: String,
    version: String,
}

/// What the program tells of a run.
#[derive(Deserialize)]
struct Ran {
    rows: i64,
    handled: i64,
    rows_per_second: f64,
}

impl Peer {
    pub(super) const fn new(program: PathBuf, system: System, url: String, rows: i64) -> Self {
        Self {
            program,
            system,
            url,
            rows,
        }
    }
}

/// The systems that the program has.
pub(super) async fn list(program: &Path) -> Result<Vec<System>> {
    output(Command::new(program).args(["list", "--json"])).await
}

#[async_trait]
impl Contestant for Peer {
    fn name(&self) -> String {
        format!("{} {}", self.system.system, self.system.version)
    }

    async fn run(&mut self) -> Result<Vec<f64>> {
        let mut command = Command::new(&self.program);
        command.args(["run", "--system", &self.system.system]);
        command.args(["--postgres", &self.url, "--rows", &self.rows.to_string()]);
        let ran: Vec<Ran> = output(&mut command).await?;
        let ran = ran.first().context("the peer told no result")?;
        ensure!(
            ran.rows == self.rows && ran.handled == self.rows,
            "{} of {} messages were handled",
            ran.handled,
            self.rows
        );
        Ok(vec![ran.rows_per_second])
    }
}

/// Runs it to its end and reads each line of its output.
async fn output<T: for<'de> Deserialize<'de>>(command: &mut Command) -> Result<Vec<T>> {
    let output = command
        .kill_on_drop(true)
        .output()
        .await
        .context("the program for the peers can't be run")?;
    ensure!(
        output.status.success(),
        "a peer failed: {}",
        String::from_utf8_lossy(&output.stderr).trim()
    );
    let text = String::from_utf8(output.stdout)?;
    let lines = text.lines().filter(|line| line.starts_with('{'));
    lines
        .map(|line| serde_json::from_str(line).context("what a peer told"))
        .collect()
}
