//! The throw-away servers of one run: found, installed where they are missing, and started.
//!
//! How each kind is run is the business of `outbox-servers`, which tests use too.

use std::path::PathBuf;
use std::process::Command;
use std::thread::{self, ScopedJoinHandle};
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow};
use outbox_servers::{KAFKA_SERVER, Kind, REQUIRE_ALL, Server, Setup, Source, StartError};

use crate::install::{self, Package};
use crate::process;
use crate::report::{Outcome, Report};
use crate::workspace::Workspace;

/// The servers of one run; ended, and their data removed, when dropped.
pub(crate) struct Servers {
    running: Vec<Server>,
    require_all: bool,
}

/// What starting the servers may do.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Policy {
    pub(crate) install: bool,
    pub(crate) require_all: bool,
}

impl Servers {
    /// Starts servers of these kinds as far as this machine can have them, side by side, each as a
    /// step of the report.
    pub(crate) fn start(
        kinds: &[Kind],
        workspace: &Workspace,
        policy: Policy,
        report: &mut Report,
    ) -> Result<Self> {
        Self::start_with(kinds, Setup::default(), workspace, policy, report)
    }

    /// The same, with servers that keep what such servers keep in production.
    pub(crate) fn start_durable(
        kinds: &[Kind],
        workspace: &Workspace,
        policy: Policy,
        report: &mut Report,
    ) -> Result<Self> {
        let setup = Setup::default().durable(true);
        Self::start_with(kinds, setup, workspace, policy, report)
    }

    fn start_with(
        kinds: &[Kind],
        setup: Setup,
        workspace: &Workspace,
        policy: Policy,
        report: &mut Report,
    ) -> Result<Self> {
        let setup = &setup.give_up(|| process::check_interrupted().is_err());
        let mut servers = Self {
            running: Vec::new(),
            require_all: policy.require_all,
        };
        thread::scope(|scope| {
            let mut starting = Vec::new();
            for kind in kinds.iter().copied() {
                let missing = make_available(kind, workspace, policy).err();
                process::check_interrupted()?;
                let start = scope.spawn(move || timed(|| Server::start_with(kind, setup.clone())));
                starting.push((kind, missing, start));
            }
            for (kind, missing, start) in starting {
                report.step(&format!("start {kind}"), || servers.take_in(missing, start))?;
            }
            Ok(servers)
        })
    }

    fn take_in(
        &mut self,
        missing: Option<anyhow::Error>,
        start: ScopedJoinHandle<'_, (Result<Server, StartError>, Duration)>,
    ) -> Result<Outcome> {
        let (server, took) = start.join().map_err(|_| anyhow!("its start panicked"))?;
        match server {
            Ok(server) => {
                let (url, origin, seconds) = (server.url(), server.origin(), took.as_secs_f64());
                let detail = format!("{url} ({origin}; ready after {seconds:.1} s)");
                self.running.push(server);
                Ok(Outcome::Passed(detail))
            }
            Err(error @ StartError::NotInstalled { .. }) => {
                Ok(Outcome::NotExercised(not_there(&error, missing)))
            }
            Err(error) => {
                process::check_interrupted()?;
                Err(error.into())
            }
        }
    }

    /// Tells a command where the servers are.
    pub(crate) fn announce_to(&self, command: &mut Command) {
        command.envs(self.addresses());
        if let Some(program) = self.kafka_program() {
            command.env(KAFKA_SERVER, program);
        }
        if self.require_all {
            command.env(REQUIRE_ALL, "1");
        }
    }

    /// Each server's environment variable and address.
    pub(crate) fn addresses(&self) -> impl Iterator<Item = (&'static str, &str)> {
        self.running
            .iter()
            .map(|server| (server.kind().variable(), server.url()))
    }

    /// What a test can start that wants a Kafka server of its own, if there is one among these.
    pub(crate) fn kafka_program(&self) -> Option<PathBuf> {
        let has_kafka = self.running.iter().any(|one| one.kind() == Kind::Kafka);
        has_kafka.then(|| Kind::Kafka.program().ok()).flatten()
    }
}

/// Starts one server for a task that does more with it than tell its address; `Ok(Err(..))` says why
/// this machine can't have it.
pub(crate) fn start_alone(
    kind: Kind,
    workspace: &Workspace,
    policy: Policy,
) -> Result<Result<Server, String>> {
    let missing = make_available(kind, workspace, policy).err();
    process::check_interrupted()?;
    let setup = Setup::default().give_up(|| process::check_interrupted().is_err());
    match Server::start_with(kind, setup) {
        Ok(server) => Ok(Ok(server)),
        Err(error @ StartError::NotInstalled { .. }) => Ok(Err(not_there(&error, missing))),
        Err(error) => {
            process::check_interrupted()?;
            Err(error.into())
        }
    }
}

fn not_there(error: &StartError, missing: Option<anyhow::Error>) -> String {
    let missing = missing.map_or_else(String::new, |error| format!(" ({error:#})"));
    format!("{error}{missing}")
}

/// Looks for the programs of these kinds, each as a step of the report, and installs what is missing
/// if that may be: somebody else starts them. Gives what that one needs in its environment.
pub(crate) fn find(
    kinds: &[Kind],
    workspace: &Workspace,
    policy: Policy,
    report: &mut Report,
) -> Result<Vec<(&'static str, PathBuf)>> {
    let mut environment = Vec::new();
    for kind in kinds.iter().copied() {
        report.step(&format!("find {kind}"), || {
            if let Err(error) = make_available(kind, workspace, policy) {
                return Ok(Outcome::NotExercised(format!("{error:#}")));
            }
            let program = kind.program()?;
            let detail = program.display().to_string();
            if kind == Kind::Kafka {
                environment.push((KAFKA_SERVER, program));
            }
            Ok(Outcome::Passed(detail))
        })?;
    }
    Ok(environment)
}

/// Installs a server that is missing; the error says why it still is.
fn make_available(kind: Kind, workspace: &Workspace, policy: Policy) -> Result<()> {
    if kind.program().is_ok() {
        return Ok(());
    }
    if !policy.install {
        return Err(anyhow!("installing is switched off"));
    }
    eprintln!("{kind} is not installed; trying to install it");
    match kind.source() {
        Source::Debian(packages) => install::with_apt(packages)?,
        Source::Python {
            requirements,
            environment,
        } => {
            let folder = workspace.tools.join(environment);
            install::with_pip(&folder, &Package::Listed(&requirements))?;
        }
    }
    kind.program()
        .map(drop)
        .map_err(|_| anyhow!("what was installed has no such program"))
}

fn timed<T>(work: impl FnOnce() -> T) -> (T, Duration) {
    let since = Instant::now();
    (work(), since.elapsed())
}
