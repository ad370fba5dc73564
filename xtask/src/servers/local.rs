//! A server that runs as a child process.

use std::fs::{self, File};
use std::net::TcpListener;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use rustix::process::Signal;

use crate::process;
use crate::tools;

/// A running server; ended by its process id when dropped.
pub(super) struct LocalServer {
    child: Child,
    url: String,
    log: PathBuf,
    stop: Signal,
}

impl LocalServer {
    /// Starts `command`, its output going to `log`; `stop` is the signal that ends it.
    pub(super) fn spawn(
        mut command: Command,
        url: String,
        log: PathBuf,
        stop: Signal,
    ) -> Result<Self> {
        let output = File::create(&log)?;
        let child = command
            .stdin(Stdio::null())
            .stdout(output.try_clone()?)
            .stderr(output)
            .process_group(0)
            .spawn()
            .with_context(|| format!("cannot start {}", command.get_program().display()))?;
        Ok(Self {
            child,
            url,
            log,
            stop,
        })
    }

    /// Waits until `ready` says so; fails with the end of the log if the server dies first.
    pub(super) fn wait_until(
        mut self,
        patience: Duration,
        ready: impl Fn() -> bool,
    ) -> Result<Self> {
        let start = Instant::now();
        while !ready() {
            process::check_interrupted()?;
            if let Some(status) = self.child.try_wait()? {
                bail!(
                    "the server {}:\n{}",
                    process::describe(status),
                    self.log_end()
                );
            }
            if start.elapsed() > patience {
                bail!(
                    "not ready after {} s:\n{}",
                    patience.as_secs(),
                    self.log_end()
                );
            }
            thread::sleep(Duration::from_millis(20));
        }
        Ok(self)
    }

    /// The address that the tests are given.
    pub(super) fn url(&self) -> &str {
        &self.url
    }

    fn log_end(&self) -> String {
        let text = fs::read(&self.log).unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        let lines: Vec<&str> = text.lines().collect();
        lines
            .get(lines.len().saturating_sub(20)..)
            .unwrap_or_default()
            .join("\n")
    }
}

impl Drop for LocalServer {
    fn drop(&mut self) {
        process::stop(&mut self.child, self.stop);
    }
}

/// A command that ends with us even if we are killed without a chance to
/// clean up, where the system has a tool for that.
pub(super) fn tied_to_us(program: &Path, stop: &str) -> Command {
    match tools::find_in_path("setpriv") {
        Some(setpriv) if cfg!(target_os = "linux") => {
            let mut command = Command::new(setpriv);
            command
                .arg(format!("--pdeathsig={stop}"))
                .arg("--")
                .arg(program);
            command
        }
        _ => Command::new(program),
    }
}

/// A port that is free now. Another process can take it before the server
/// does, so callers try again.
pub(super) fn free_port() -> Result<u16> {
    let listener = TcpListener::bind(("127.0.0.1", 0)).context("no free port on loopback")?;
    Ok(listener.local_addr()?.port())
}
