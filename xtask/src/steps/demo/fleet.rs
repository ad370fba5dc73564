//! The example's processes: started, killed, started again, and ended.

use std::fs::{self, File, OpenOptions};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use outbox_servers::command::find;
use rustix::process::{Pid, Signal, kill_process};

use crate::process::describe;

/// How long a process may take to come to rest; its own deadline is shorter.
const GRACE: Duration = Duration::from_secs(15);
const POLL: Duration = Duration::from_millis(20);

/// One of the processes.
#[derive(Debug)]
pub(super) struct Process {
    pub(super) name: &'static str,
    /// How often it was killed.
    pub(super) kills: u32,
    program: PathBuf,
    arguments: Vec<String>,
    environment: Vec<(&'static str, String)>,
    log: PathBuf,
    child: Option<Child>,
    /// When it is started again, while it is away.
    back_at: Option<Instant>,
    /// It did what it was for.
    done_at: Option<Instant>,
}

impl Process {
    /// One that does not run yet; what it prints goes to a file of its name.
    pub(super) fn new(
        name: &'static str,
        program: &Path,
        arguments: &[&str],
        environment: &[(&'static str, String)],
        logs: &Path,
    ) -> Self {
        Self {
            name,
            kills: 0,
            program: program.to_owned(),
            arguments: arguments.iter().map(|&word| word.to_owned()).collect(),
            environment: environment.to_vec(),
            log: logs.join(format!("{name}.log")),
            child: None,
            back_at: None,
            done_at: None,
        }
    }

    /// Starts it.
    pub(super) fn start(&mut self) -> Result<()> {
        let open = || -> std::io::Result<(File, File)> {
            let file = OpenOptions::new()
                .create(true)
                .append(true)
                .open(&self.log)?;
            Ok((file.try_clone()?, file))
        };
        let (output, errors) =
            open().with_context(|| format!("cannot write {}", self.log.display()))?;
        let mut command = tied_to_us(&self.program);
        command
            .args(&self.arguments)
            .envs(self.environment.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::null())
            .stdout(output)
            .stderr(errors)
            .process_group(0);
        let child = command
            .spawn()
            .with_context(|| format!("cannot start {}", self.program.display()))?;
        self.child = Some(child);
        self.back_at = None;
        Ok(())
    }

    /// Kills it, and lets it stay away for a while.
    pub(super) fn kill(&mut self, away: Duration) {
        if let Some(mut child) = self.child.take() {
            let _gone = child.kill();
            let _status = child.wait();
            self.kills += 1;
            self.back_at = Some(Instant::now() + away);
        }
    }

    /// Starts it again if it is time, and notices when it has ended.
    ///
    /// # Errors
    /// If it ended by itself and not with success.
    pub(super) fn tend(&mut self) -> Result<()> {
        if self.back_at.is_some_and(|at| at <= Instant::now()) {
            self.start()?;
        }
        let Some(child) = &mut self.child else {
            return Ok(());
        };
        match child.try_wait().context("a process can't be watched")? {
            None => {}
            Some(status) if status.success() => {
                self.child = None;
                self.done_at = Some(Instant::now());
            }
            Some(status) => {
                self.child = None;
                bail!(
                    "{} {} and nobody had killed it",
                    self.name,
                    describe(status)
                );
            }
        }
        Ok(())
    }

    /// Its number, if it runs.
    pub(super) fn pid(&self) -> Option<u32> {
        self.child.as_ref().map(Child::id)
    }

    /// Since when it has done what it was for.
    pub(super) fn done_at(&self) -> Option<Instant> {
        self.done_at
    }

    /// Asks it to end; returns what is wrong with how it did.
    pub(super) fn stop(&mut self) -> Option<String> {
        self.ask_to_end();
        let status = self.ends_within(GRACE);
        self.child = None;
        match status? {
            Ok(status) if status.success() => None,
            Ok(status) => Some(format!("{} {} at its end", self.name, describe(status))),
            Err(()) => Some(format!(
                "{} did not come to rest within {} s",
                self.name,
                GRACE.as_secs()
            )),
        }
    }

    /// Asks it to end.
    pub(super) fn ask_to_end(&self) {
        if let Some(child) = &self.child {
            let _gone = kill_process(Pid::from_child(child), Signal::TERM);
        }
    }

    /// The last lines that it printed.
    pub(super) fn log_end(&self, lines: usize) -> String {
        let bytes = fs::read(&self.log).unwrap_or_default();
        let text = String::from_utf8_lossy(&bytes);
        let all: Vec<&str> = text.lines().collect();
        let from = all.len().saturating_sub(lines);
        all.get(from..).unwrap_or_default().join("\n")
    }

    /// How it ended; `Err` if it did not and was killed, nothing if it did not run.
    fn ends_within(&mut self, patience: Duration) -> Option<Result<ExitStatus, ()>> {
        let child = self.child.as_mut()?;
        let since = Instant::now();
        while since.elapsed() < patience {
            if let Ok(Some(status)) = child.try_wait() {
                return Some(Ok(status));
            }
            thread::sleep(POLL);
        }
        let _gone = child.kill();
        let _status = child.wait();
        Some(Err(()))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if let Some(child) = &mut self.child {
            let _gone = child.kill();
            let _status = child.wait();
        }
    }
}

/// A command that ends with us even if we are killed, where the system has a tool for that. The
/// kernel goes by the thread that starts it, which is the one that runs the whole demo.
fn tied_to_us(program: &Path) -> Command {
    match find("setpriv") {
        Some(setpriv) if cfg!(target_os = "linux") => {
            let mut command = Command::new(setpriv);
            command.args(["--pdeathsig=KILL", "--"]).arg(program);
            command
        }
        _ => Command::new(program),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str, folder: &Path) -> Process {
        let mut process = Process::new("shell", Path::new("sh"), &["-c", script], &[], folder);
        process.start().unwrap();
        process
    }

    fn until(process: &mut Process, mut is_so: impl FnMut(&mut Process) -> bool) {
        let since = Instant::now();
        while !is_so(process) {
            assert!(since.elapsed() < GRACE);
            thread::sleep(POLL);
        }
    }

    #[test]
    fn who_was_killed_comes_back() {
        let folder = tempfile::tempdir().unwrap();
        let mut process = shell("sleep 600", folder.path());
        let first = process.pid();
        process.kill(Duration::ZERO);
        assert_eq!(process.pid(), None);
        process.tend().unwrap();
        assert!(process.pid().is_some() && process.pid() != first);
        assert_eq!(process.kills, 1);
    }

    #[test]
    fn a_failure_is_told_and_success_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let mut good = shell("echo fine", folder.path());
        until(&mut good, |process| {
            process.tend().unwrap();
            process.done_at().is_some()
        });
        assert_eq!(good.log_end(5), "fine");
        let mut bad = shell("exit 3", folder.path());
        until(&mut bad, |process| {
            process
                .tend()
                .is_err_and(|error| error.to_string().contains("exit code 3"))
        });
    }

    #[test]
    fn an_orderly_end_is_asked_for() {
        let folder = tempfile::tempdir().unwrap();
        let mut polite = shell(
            "trap 'exit 0' TERM; echo up; while :; do sleep 0.01; done",
            folder.path(),
        );
        until(&mut polite, |process| process.log_end(1) == "up");
        assert_eq!(polite.stop(), None);
        let mut rude = shell(
            "trap 'exit 4' TERM; echo on; while :; do sleep 0.01; done",
            folder.path(),
        );
        until(&mut rude, |process| process.log_end(1) == "on");
        assert!(
            rude.stop()
                .is_some_and(|wrong| wrong.contains("exit code 4"))
        );
    }
}
