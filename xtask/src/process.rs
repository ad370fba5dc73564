//! Running child processes so that none outlives this one.
//!
//! Every child has a process group of its own. Ctrl-C therefore reaches only
//! this process, which ends the group and then returns through the ordinary
//! path, where the servers' guards clean up.

use std::fmt;
use std::io::{self, BufRead, BufReader, IsTerminal};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, LazyLock};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use rustix::process::{Pid, Signal, kill_process_group};

pub(crate) use outbox_servers::command::{capture, describe};

static INTERRUPTED: LazyLock<Arc<AtomicBool>> = LazyLock::new(Arc::default);

const POLL: Duration = Duration::from_millis(50);
const GRACE: Duration = Duration::from_secs(10);

/// The error of everything that a signal cut short.
#[derive(Debug)]
pub(crate) struct Interrupted;

impl fmt::Display for Interrupted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("interrupted; servers are stopped and their data is removed")
    }
}

impl std::error::Error for Interrupted {}

/// Turns Ctrl-C, a polite kill and a closed terminal into [`Interrupted`].
pub(crate) fn watch_signals() -> Result<()> {
    use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        signal_hook::flag::register(signal, Arc::clone(&INTERRUPTED))
            .context("cannot watch for signals")?;
    }
    Ok(())
}

/// Fails once a signal has arrived.
pub(crate) fn check_interrupted() -> Result<()> {
    if INTERRUPTED.load(Ordering::Relaxed) {
        bail!(Interrupted);
    }
    Ok(())
}

/// Runs a command to its end, its output going where ours goes.
pub(crate) fn run(command: &mut Command) -> Result<ExitStatus> {
    let mut group = Group::spawn(command.stdin(Stdio::null()))?;
    loop {
        check_interrupted()?;
        if let Some(status) = group.child.try_wait()? {
            return Ok(status);
        }
        thread::sleep(POLL);
    }
}

/// Runs a command to its end and hands each line that it prints to `line`.
///
/// Its errors are among the lines, in their place, unless they go to a
/// terminal, where they keep their colours and progress.
pub(crate) fn run_lines(command: Command, line: impl FnMut(&str)) -> Result<ExitStatus> {
    let merge = !io::stderr().is_terminal();
    run_piped(command, merge, line)
}

/// Like [`run_lines`], with the errors among the lines in any case.
pub(crate) fn run_merged(command: Command, line: impl FnMut(&str)) -> Result<ExitStatus> {
    run_piped(command, true, line)
}

fn run_piped(mut command: Command, merge: bool, mut line: impl FnMut(&str)) -> Result<ExitStatus> {
    let (output, input) = io::pipe()?;
    if merge {
        command.stderr(input.try_clone()?);
    }
    let mut group = Group::spawn(command.stdin(Stdio::null()).stdout(input))?;
    // It holds our ends of the pipe, which has no end while one is open.
    drop(command);
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        let mut reader = BufReader::new(output);
        let mut bytes = Vec::new();
        while matches!(reader.read_until(b'\n', &mut bytes), Ok(1..)) {
            let text = String::from_utf8_lossy(&bytes).trim_end().to_owned();
            if sender.send(text).is_err() {
                break;
            }
            bytes.clear();
        }
    });

    // A process that the command left behind may hold the pipe open, so the
    // end of the pipe is awaited only for a while after the command's end.
    let mut ended: Option<(ExitStatus, Instant)> = None;
    loop {
        check_interrupted()?;
        match receiver.recv_timeout(POLL) {
            Ok(text) => line(&text),
            Err(RecvTimeoutError::Disconnected) => break,
            Err(RecvTimeoutError::Timeout) => {}
        }
        match ended {
            Some((status, at)) if at.elapsed() > GRACE => return Ok(status),
            Some(_) => {}
            None => {
                ended = group
                    .child
                    .try_wait()?
                    .map(|status| (status, Instant::now()))
            }
        }
    }
    match ended {
        Some((status, _)) => Ok(status),
        None => Ok(group.child.wait()?),
    }
}

fn ends_within(child: &mut Child, patience: Duration) -> bool {
    let start = Instant::now();
    while start.elapsed() < patience {
        if !matches!(child.try_wait(), Ok(None)) {
            return true;
        }
        thread::sleep(POLL);
    }
    false
}

fn name(command: &Command) -> String {
    command.get_program().to_string_lossy().into_owned()
}

/// A running child and all that it started; ended when dropped early.
struct Group {
    child: Child,
}

impl Group {
    fn spawn(command: &mut Command) -> Result<Self> {
        let child = command
            .process_group(0)
            .spawn()
            .with_context(|| format!("cannot start {}", name(command)))?;
        Ok(Self { child })
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        if !matches!(self.child.try_wait(), Ok(None)) {
            return;
        }
        let group = Pid::from_child(&self.child);
        let _gone = kill_process_group(group, Signal::TERM);
        if !ends_within(&mut self.child, GRACE) {
            let _gone = kill_process_group(group, Signal::KILL);
            let _status = self.child.wait();
        }
    }
}
