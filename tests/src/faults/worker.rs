use std::fs::{self, File};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use outbox_runtime::fault::VARIABLE;
use rustix::process::{Pid, Signal, kill_process};

use super::plan::{PLAN, Plan};

/// How long a worker may take to end in good order.
const PATIENCE: Duration = Duration::from_secs(60);

/// A worker in a process of its own, which never outlives this value.
pub struct Worker {
    child: Child,
    /// What it was started with, for its successor.
    pub start: Start,
    /// The most memory it had so far, in KiB.
    pub peak_memory: u64,
}

/// All that a worker is started with.
#[derive(Debug, Clone)]
pub struct Start {
    /// What it does.
    pub plan: Plan,
    /// What is in [`VARIABLE`].
    pub faults: String,
    /// What else is in its environment.
    pub environment: Vec<(String, String)>,
}

impl From<Plan> for Start {
    fn from(plan: Plan) -> Self {
        Self {
            plan,
            faults: String::new(),
            environment: Vec::new(),
        }
    }
}

impl Worker {
    /// Starts a worker, whose log goes to the end of a file.
    pub fn spawn(program: &Path, start: Start, log: &Path) -> Self {
        let log = File::options().create(true).append(true).open(log);
        let child = Command::new(program)
            .arg("worker")
            .env(
                PLAN,
                serde_json::to_string(&start.plan).expect("a plan is JSON"),
            )
            .env(VARIABLE, &start.faults)
            .envs(start.environment.iter().map(|(name, value)| (name, value)))
            // It ends when this pipe does, so also when we are killed.
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(log.expect("the log opens"))
            .spawn()
            .expect("the worker starts");
        Self {
            child,
            start,
            peak_memory: 0,
        }
    }

    /// How it ended, if it has.
    pub fn ended(&mut self) -> Option<ExitStatus> {
        self.weigh();
        self.child.try_wait().expect("it is our child")
    }

    /// Kills it with SIGKILL.
    pub fn kill(&mut self) {
        self.weigh();
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Stops it with SIGSTOP: it is there and does nothing.
    pub fn pause(&self) {
        self.signal(Signal::STOP);
    }

    /// Lets it go on after [`pause`](Self::pause).
    pub fn wake(&self) {
        self.signal(Signal::CONT);
    }

    /// Asks it to end in good order and waits; says whether it did.
    pub async fn finish(&mut self) -> bool {
        self.weigh();
        self.signal(Signal::TERM);
        let since = Instant::now();
        while since.elapsed() < PATIENCE {
            if let Some(status) = self.ended() {
                return status.success();
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        self.kill();
        false
    }

    fn signal(&self, signal: Signal) {
        let _ = kill_process(Pid::from_child(&self.child), signal);
    }

    /// Notes the most memory it had, where the operating system tells.
    fn weigh(&mut self) {
        let file = format!("/proc/{}/status", self.child.id());
        let text = fs::read_to_string(file).unwrap_or_default();
        let peak = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let peak = peak.and_then(|peak| peak.trim().trim_end_matches(" kB").parse().ok());
        self.peak_memory = self.peak_memory.max(peak.unwrap_or(0));
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.kill();
    }
}
