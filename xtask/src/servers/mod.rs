//! Throw-away servers for the tests.
//!
//! Each kind of server is a [`Recipe`]. A new one is a file beside
//! `postgres.rs` and a line in [`recipes`]; starting, installing, Docker,
//! clean-up and reporting are shared.

mod docker;
mod folder;
mod local;
mod postgres;

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use crate::report::{Outcome, Report};
use crate::workspace::Workspace;
use docker::{Container, Image};
use folder::RunFolder;
use local::LocalServer;
use postgres::Durability;

/// Set for the tests when a test that lacks its server must fail instead of skipping.
pub(crate) const REQUIRE_ALL: &str = "OUTBOX_TEST_REQUIRE_ALL";

/// How one kind of server is found, installed and started.
trait Recipe {
    /// The server's name for people.
    fn name(&self) -> &'static str;

    /// The environment variable that tells the tests its address.
    fn variable(&self) -> &'static str;

    /// The folder of its binaries, if they are installed.
    fn find(&self) -> Option<PathBuf>;

    /// Installs it; the error says why that is not possible here.
    fn install(&self, workspace: &Workspace) -> Result<()>;

    /// Starts it on loopback with its data in `folder` and waits until it serves.
    fn start(&self, binaries: &Path, folder: &Path) -> Result<LocalServer>;

    /// How to run it where there is only a container engine.
    fn image(&self) -> Image;
}

fn recipes(durability: Durability) -> Vec<Box<dyn Recipe>> {
    vec![Box::new(postgres::Postgres { durability })]
}

/// The servers of one run; stopped, and their data removed, when dropped.
pub(crate) struct Servers {
    // Fields drop in this order: the servers end before their folder goes.
    running: Vec<Running>,
    _folder: RunFolder,
    require_all: bool,
}

struct Running {
    variable: &'static str,
    url: String,
    _guard: Guard,
}

enum Guard {
    Local(#[allow(dead_code, reason = "held for its drop")] LocalServer),
    Container(#[allow(dead_code, reason = "held for its drop")] Container),
}

/// What starting the servers may do.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Policy {
    pub(crate) install: bool,
    pub(crate) require_all: bool,
}

impl Servers {
    /// Starts every server that this machine can have, each as a step of the report.
    pub(crate) fn start(
        workspace: &Workspace,
        policy: Policy,
        report: &mut Report,
    ) -> Result<Self> {
        Self::start_with(Durability::Tests, workspace, policy, report)
    }

    /// The same, with servers that keep what such servers keep in production.
    pub(crate) fn start_durable(
        workspace: &Workspace,
        policy: Policy,
        report: &mut Report,
    ) -> Result<Self> {
        Self::start_with(Durability::Default, workspace, policy, report)
    }

    fn start_with(
        durability: Durability,
        workspace: &Workspace,
        policy: Policy,
        report: &mut Report,
    ) -> Result<Self> {
        let folder = RunFolder::create()?;
        let mut running = Vec::new();
        for recipe in recipes(durability) {
            report.step(&format!("start {}", recipe.name()), || {
                let place = match Place::choose(recipe.as_ref(), workspace, policy) {
                    Ok(place) => place,
                    Err(reason) => return Ok(Outcome::NotExercised(format!("{reason:#}"))),
                };
                let (url, guard) = place.start(recipe.as_ref(), &folder)?;
                let detail = format!("{url} ({place})");
                running.push(Running {
                    variable: recipe.variable(),
                    url,
                    _guard: guard,
                });
                Ok(Outcome::Passed(detail))
            })?;
        }
        Ok(Self {
            running,
            _folder: folder,
            require_all: policy.require_all,
        })
    }

    /// Tells a command where the servers are.
    pub(crate) fn announce_to(&self, command: &mut Command) {
        for (variable, url) in self.addresses() {
            command.env(variable, url);
        }
        if self.require_all {
            command.env(REQUIRE_ALL, "1");
        }
    }

    /// Each server's environment variable and address.
    pub(crate) fn addresses(&self) -> impl Iterator<Item = (&'static str, &str)> {
        self.running
            .iter()
            .map(|server| (server.variable, server.url.as_str()))
    }
}

/// Where a server of one kind comes from.
enum Place {
    Binaries(PathBuf),
    Docker(docker::Engine),
}

impl Place {
    /// Binaries that are there, else installed ones, else a container.
    fn choose(recipe: &dyn Recipe, workspace: &Workspace, policy: Policy) -> Result<Self> {
        if let Some(binaries) = recipe.find() {
            return Ok(Self::Binaries(binaries));
        }
        let refusal = if policy.install {
            eprintln!("{} is not installed; trying to install it", recipe.name());
            recipe.install(workspace).err()
        } else {
            Some(anyhow::anyhow!("installing is switched off"))
        };
        crate::process::check_interrupted()?;
        if let Some(binaries) = recipe.find() {
            return Ok(Self::Binaries(binaries));
        }
        docker::Engine::find().map(Self::Docker).with_context(|| {
            let refusal = refusal.map_or_else(
                || "the installed package has no server binary".to_owned(),
                |error| format!("{error:#}"),
            );
            format!("{} is not installed ({refusal})", recipe.name())
        })
    }

    fn start(&self, recipe: &dyn Recipe, folder: &RunFolder) -> Result<(String, Guard)> {
        match self {
            Self::Binaries(binaries) => {
                let server = recipe.start(binaries, &folder.of(recipe.name())?)?;
                Ok((server.url().to_owned(), Guard::Local(server)))
            }
            Self::Docker(engine) => {
                let (container, url) = engine.run(&recipe.image())?;
                Ok((url, Guard::Container(container)))
            }
        }
    }
}

impl std::fmt::Display for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Binaries(folder) => write!(f, "binaries in {}", folder.display()),
            Self::Docker(_) => f.write_str("Docker"),
        }
    }
}
