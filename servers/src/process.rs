//! Child processes, none of which outlives this one.

use std::fs::{self, File};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Sender};
use std::sync::{LazyLock, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::command::{self, describe};
use crate::tree;

const POLL: Duration = Duration::from_millis(10);

/// A command that ends with us even if we are killed without a chance to
/// clean up, where the system has a tool for that.
pub(crate) fn tied_to_us(program: &Path, signal: &str) -> Command {
    match command::find("setpriv") {
        Some(setpriv) if cfg!(target_os = "linux") => {
            let mut command = Command::new(setpriv);
            command
                .arg(format!("--pdeathsig={signal}"))
                .arg("--")
                .arg(program);
            command
        }
        _ => Command::new(program),
    }
}

/// A process, its output going to a file.
#[derive(Debug)]
pub(crate) struct Process {
    child: Child,
    /// Nothing once it was waited for: its number may then be another's.
    pid: Option<Pid>,
    log: PathBuf,
}

impl Process {
    /// Starts a command in a group of its own.
    pub(crate) fn spawn(mut command: Command, log: PathBuf) -> Result<Self, String> {
        let output = File::create(&log).and_then(|file| Ok((file.try_clone()?, file)));
        let (output, errors) =
            output.map_err(|error| format!("cannot write {}: {error}", log.display()))?;
        command
            .stdin(Stdio::null())
            .stdout(output)
            .stderr(errors)
            .process_group(0);
        let program = command::name(&command);
        let child = spawn_from_a_lasting_thread(command)
            .map_err(|error| format!("cannot start {program}: {error}"))?;
        let pid = Some(Pid::from_child(&child));
        Ok(Self { child, pid, log })
    }

    /// Whether it has not ended.
    pub(crate) fn is_running(&mut self) -> bool {
        self.status().is_none()
    }

    /// How it ended, if it has, with the end of what it printed.
    pub(crate) fn ended(&mut self) -> Option<String> {
        let status = self.status()?;
        Some(format!("it {}:\n{}", describe(status), self.log_end()))
    }

    /// The last lines that it printed.
    pub(crate) fn log_end(&self) -> String {
        let text = self.printed();
        let lines: Vec<&str> = text.lines().collect();
        let from = lines.len().saturating_sub(20);
        lines.get(from..).unwrap_or_default().join("\n")
    }

    /// All that it printed.
    pub(crate) fn printed(&self) -> String {
        String::from_utf8_lossy(&fs::read(&self.log).unwrap_or_default()).into_owned()
    }

    /// Asks it to end and waits for that; `false` if it goes on.
    pub(crate) fn ends_with(&mut self, signal: Signal, patience: Duration) -> bool {
        // A stopped process would not see it.
        self.resume();
        if let Some(pid) = self.pid {
            let _gone = kill_process(pid, signal);
        }
        let since = Instant::now();
        while self.is_running() {
            if since.elapsed() > patience {
                return false;
            }
            thread::sleep(POLL);
        }
        true
    }

    /// Kills it and all that it started.
    pub(crate) fn kill(&mut self) {
        if let Some(pid) = self.pid.take() {
            tree::kill(pid);
            let _status = self.child.wait();
        }
    }

    /// Stops it and all that it started where they are.
    pub(crate) fn pause(&self) {
        if let Some(pid) = self.pid {
            tree::freeze(pid);
        }
    }

    /// Lets it go on.
    pub(crate) fn resume(&self) {
        if let Some(pid) = self.pid {
            tree::thaw(pid);
        }
    }

    fn status(&mut self) -> Option<ExitStatus> {
        let status = self.child.try_wait().ok()?;
        if status.is_some() {
            self.pid = None;
        }
        status
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}

type Job = (Command, Sender<std::io::Result<Child>>);

/// The kernel's word of a parent's end is of the *thread* that started the child, and threads of
/// tests and of pools come and go. So one that lasts as long as the process starts all of them.
fn spawn_from_a_lasting_thread(command: Command) -> std::io::Result<Child> {
    static JOBS: LazyLock<std::io::Result<Mutex<Sender<Job>>>> = LazyLock::new(|| {
        let (jobs, received) = mpsc::channel::<Job>();
        thread::Builder::new()
            .name("outbox-servers".to_owned())
            .spawn(move || {
                for (mut command, answer) in received {
                    let _gone = answer.send(command.spawn());
                }
            })?;
        Ok(Mutex::new(jobs))
    });
    let over = || std::io::Error::other("the thread that starts servers is over");
    let jobs = JOBS.as_ref().map_err(|_| over())?;
    let (answer, answered) = mpsc::channel();
    let jobs = jobs.lock().unwrap_or_else(PoisonError::into_inner);
    jobs.send((command, answer)).map_err(|_| over())?;
    drop(jobs);
    answered.recv().map_err(|_| over())?
}
