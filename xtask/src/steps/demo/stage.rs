//! One run: everything started, killed, awaited, compared and ended.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail};
use outbox_servers::{Kind, Server};
use serde_json::Value;
use tempfile::TempDir;

use super::dice::Dice;
use super::ending::Ending;
use super::fleet::Process;
use super::looking::Looking;
use super::middle::Middle;
use super::show::{Scene, Show};
use super::status::Status;
use super::{PROGRAM, Plan, orders};
use crate::process;
use crate::servers::{self, Policy};
use crate::workspace::Workspace;

const POLL: Duration = Duration::from_millis(20);
/// The time in which orders come in, for each kill.
const WINDOW_A_KILL: Duration = Duration::from_millis(1_600);
/// For so long what a killed process had stays its own, in seconds: a demo has no patience.
const LEASE: &str = "2";
/// What a log is about, unless `RUST_LOG` says otherwise.
const LOGGED: &str = "warn,order_fulfilment_distributed=info";
const LINES: usize = 25;
/// Within that, each process writes down what it has counted.
const SETTLE: Duration = Duration::from_secs(1);

/// All that a run needs, running.
pub(super) struct Stage {
    processes: Vec<Process>,
    middle: Middle,
    program: PathBuf,
    environment: Vec<(&'static str, String)>,
    dice: fastrand::Rng,
    _postgres: Server,
    _folder: TempDir,
}

impl Drop for Stage {
    fn drop(&mut self) {
        self.processes.clear();
        self.middle.end();
    }
}

impl Stage {
    /// Starts the servers and makes all else ready; `Ok(Err(..))` says what this machine lacks.
    pub(super) fn set(
        workspace: &Workspace,
        policy: Policy,
        plan: &Plan,
    ) -> Result<Result<Self, String>> {
        let start = |kind| servers::start_alone(kind, workspace, policy);
        let (postgres, broker) = thread::scope(|scope| {
            let broker = scope.spawn(|| start(plan.broker));
            (start(Kind::Postgres), broker.join())
        });
        let broker = broker.map_err(|_| anyhow!("the broker's start panicked"))?;
        let (postgres, broker) = match (postgres?, broker?) {
            (Ok(postgres), Ok(broker)) => (postgres, broker),
            (Err(missing), _) | (_, Err(missing)) => return Ok(Err(missing)),
        };
        let folder = tempfile::tempdir().context("a folder for the run can't be made")?;
        let logs = match &plan.logs {
            Some(folder) => folder.as_path(),
            None => folder.path(),
        };
        fs::create_dir_all(logs).with_context(|| format!("cannot make {}", logs.display()))?;
        let mut dice = fastrand::Rng::with_seed(plan.seed);
        let csv = folder.path().join("orders.csv");
        fs::write(&csv, orders::csv(plan.orders, &mut dice)).context("cannot write the orders")?;
        let logged = std::env::var("RUST_LOG").unwrap_or_else(|_| LOGGED.to_owned());
        // Not as arguments, which everybody on the machine can read.
        let environment = vec![
            ("FULFILMENT_DATABASE_URL", postgres.url().to_owned()),
            ("FULFILMENT_BROKER_URL", broker.url().to_owned()),
            ("RUST_LOG", logged),
        ];
        let program = workspace.target.join("debug").join(PROGRAM);
        Ok(Ok(Self {
            processes: processes(plan, &program, &csv, &environment, logs),
            middle: Middle::Up(Box::new(broker)),
            program,
            environment,
            dice,
            _postgres: postgres,
            _folder: folder,
        }))
    }

    /// Runs to the end, with the processes' last words where that is not reached.
    pub(super) fn play(mut self, plan: &Plan, show: &mut Show) -> Result<Ending> {
        match self.play_through(plan, show) {
            Err(error) if !error.is::<process::Interrupted>() => {
                let logs = self.processes.iter().map(|one| {
                    let lines = one.log_end(LINES);
                    format!("\n--- the last lines of {}:\n{lines}", one.name)
                });
                let logs: String = logs.collect();
                Err(anyhow!("{error:#} (--seed {}){logs}", plan.seed))
            }
            ending => ending,
        }
    }

    fn play_through(&mut self, plan: &Plan, show: &mut Show) -> Result<Ending> {
        let begun = Instant::now();
        show.say(&format!(
            "{} orders, {} kills, seed {}",
            plan.orders, plan.kills, plan.seed
        ));
        for process in &mut self.processes {
            process.start()?;
        }
        let mut dice = Dice::new(
            self.dice.fork(),
            plan.kills,
            plan.kills_broker,
            window(plan),
            begun,
        );
        let mut looks = Looking::new(begun);
        let mut broker_kills = 0;
        loop {
            process::check_interrupted()?;
            for process in &mut self.processes {
                process.tend()?;
            }
            self.middle.tend()?;
            broker_kills += self.strike(&mut dice, plan, show);
            if looks.next <= Instant::now() {
                let begun = Instant::now();
                looks.take(begun, self.status()?)?;
                show.update(&self.scene(plan, broker_kills, &looks.status));
            }
            if dice.is_done() && self.is_over(&looks) {
                break;
            }
            thread::sleep(POLL);
        }
        show.finish(&self.scene(plan, broker_kills, &looks.status));
        let seconds = begun.elapsed().as_secs_f64();
        thread::sleep(SETTLE);
        let (reconciliation, balanced) = self.reconcile(show)?;
        self.processes.iter().for_each(Process::ask_to_end);
        let disorderly = self.processes.iter_mut().filter_map(Process::stop);
        let disorderly: Vec<String> = disorderly.collect();
        if let Some(first) = disorderly.first() {
            bail!("{first}");
        }
        Ok(Ending {
            broker: plan.broker.name(),
            seed: plan.seed,
            orders: plan.orders,
            seconds,
            kills: self
                .processes
                .iter()
                .map(|one| (one.name, one.kills))
                .collect(),
            broker_kills,
            balanced,
            disorderly,
            reconciliation,
        })
    }

    /// Kills whom the dice say; returns how often the broker was one of them.
    fn strike(&mut self, dice: &mut Dice, plan: &Plan, show: &Show) -> u32 {
        let now = Instant::now();
        let mut living: Vec<&mut Process> = self.processes.iter_mut().collect();
        living.retain(|one| one.pid().is_some());
        if let Some(at) = dice.victim(living.len(), now)
            && let Some(victim) = living.get_mut(at)
        {
            let away = dice.away();
            victim.kill(away);
            show.say(&format!(
                "kill -9 {}, away for {} ms",
                victim.name,
                away.as_millis()
            ));
        }
        if !dice.is_brokers_turn(now) {
            return 0;
        }
        let away = dice.away();
        self.middle.kill(away);
        show.say(&format!(
            "kill -9 {}, away for {} ms and its start",
            plan.broker,
            away.as_millis()
        ));
        1
    }

    /// Whether all orders are placed, everybody is back, and nothing is left to do.
    fn is_over(&self, looks: &Looking) -> bool {
        let everybody = self
            .processes
            .iter()
            .all(|one| one.pid().is_some() || one.done_at().is_some());
        let mut done = self.processes.iter().filter_map(Process::done_at);
        // A look from before the last order was placed says nothing.
        done.next().is_some_and(|at| at < looks.begun)
            && everybody
            && self.middle.is_up()
            && looks.status.drained
    }

    fn scene<'a>(&'a self, plan: &Plan, broker_kills: u32, status: &'a Status) -> Scene<'a> {
        Scene {
            processes: &self.processes,
            broker: plan.broker.name(),
            broker_is_up: self.middle.is_up(),
            broker_kills,
            status,
        }
    }

    /// What the example says, or nothing while its databases are not there yet.
    fn status(&self) -> Result<Option<Status>> {
        let output = self.ask(&["status", "--json"])?;
        match output.status.success() {
            false => Ok(None),
            true => serde_json::from_slice(&output.stdout)
                .map(Some)
                .context("the example's status is not understood"),
        }
    }

    fn reconcile(&self, show: &Show) -> Result<(Value, bool)> {
        if show.has_books() {
            print!(
                "{}",
                String::from_utf8_lossy(&self.ask(&["reconcile"])?.stdout)
            );
        }
        let output = self.ask(&["reconcile", "--json"])?;
        match output.status.code() {
            Some(code @ (0 | 1)) => {
                let books = serde_json::from_slice(&output.stdout);
                Ok((books.context("the books are not understood")?, code == 0))
            }
            _ => bail!("{}", String::from_utf8_lossy(&output.stderr).trim()),
        }
    }

    fn ask(&self, arguments: &[&str]) -> Result<std::process::Output> {
        let mut command = Command::new(&self.program);
        command
            .args(arguments)
            .envs(self.environment.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::null());
        command
            .output()
            .with_context(|| format!("cannot start {}", self.program.display()))
    }
}

/// How long orders come in: at once where nothing is killed.
fn window(plan: &Plan) -> Duration {
    WINDOW_A_KILL * plan.kills
}

fn processes(
    plan: &Plan,
    program: &Path,
    csv: &Path,
    environment: &[(&'static str, String)],
    logs: &Path,
) -> Vec<Process> {
    let new = |name, arguments: &[&str]| Process::new(name, program, arguments, environment, logs);
    let csv = csv.display().to_string();
    let rate = f64::from(plan.orders) / window(plan).as_secs_f64().max(0.001);
    let rate = format!("{:.3}", rate.clamp(0.01, 1_000_000.0));
    vec![
        new("ordering", &["service", "ordering", "--lease", LEASE]),
        new("inventory", &["service", "inventory", "--lease", LEASE]),
        new("payment", &["service", "payment", "--lease", LEASE]),
        new("relay", &["relay", "--lease", LEASE]),
        new("place", &["place", "--orders", &csv, "--per-second", &rate]),
    ]
}
