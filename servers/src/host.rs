//! What a server runs in: processes of ours, or a container.

use std::path::PathBuf;
use std::time::Duration;

use crate::docker::{self, Container};
use crate::process::Process;
use crate::recipes::{Recipe, Site};
use crate::{Kind, StartError};

/// How long processes may take to end in good order.
const GRACE: Duration = Duration::from_secs(10);

/// Where a server's programs are.
#[derive(Debug, Clone)]
pub(crate) enum Programs {
    /// Here: the program that is the server.
    Installed(PathBuf),
    /// In an image; this is Docker.
    Image(PathBuf),
}

impl Programs {
    /// Programs that are installed, else an image.
    pub(crate) fn choose(kind: Kind, recipe: &dyn Recipe) -> Result<Self, StartError> {
        let missing = match recipe.find() {
            Ok(program) => return Ok(Self::Installed(program)),
            Err(missing) => missing,
        };
        docker::engine().map(Self::Image).map_err(|no_engine| {
            let why = format!("{missing}, and {no_engine}");
            StartError::NotInstalled { kind, why }
        })
    }
}

/// A server's processes or its container.
#[derive(Debug)]
pub(crate) enum Host {
    /// The server itself is the last one.
    Processes(Vec<Process>),
    /// None before it is launched for the first time.
    Container(Option<Container>),
}

impl Host {
    /// Nothing that runs yet.
    pub(crate) fn new(programs: &Programs) -> Self {
        match programs {
            Programs::Installed(_) => Self::Processes(Vec::new()),
            Programs::Image(_) => Self::Container(None),
        }
    }

    /// Starts the server; it need not serve yet.
    pub(crate) fn launch(&mut self, recipe: &dyn Recipe, site: &Site) -> Result<(), String> {
        match (self, &site.programs) {
            (Self::Processes(processes), _) => recipe.launch(site, processes),
            (Self::Container(Some(container)), _) => container.start(),
            (Self::Container(container), Programs::Image(docker)) => {
                let image = recipe.image(site);
                *container = Some(Container::run(docker.clone(), &image, site.port)?);
                Ok(())
            }
            (Self::Container(None), Programs::Installed(_)) => Ok(()),
        }
    }

    /// Forgets all that was launched and its data, for a launch on another port.
    pub(crate) fn forget(&mut self) {
        self.kill();
        if let Self::Container(container) = self {
            *container = None;
        }
    }

    /// How the server ended, if it has, with the end of what it printed.
    pub(crate) fn ended(&mut self) -> Option<String> {
        match self {
            Self::Processes(processes) => processes.last_mut()?.ended(),
            Self::Container(Some(container)) if container.is_running() => None,
            Self::Container(_) => Some(format!("its container ended:\n{}", self.log_end())),
        }
    }

    /// The last lines that the server printed.
    pub(crate) fn log_end(&self) -> String {
        match self {
            Self::Processes(processes) => processes.last().map(Process::log_end),
            Self::Container(container) => container.as_ref().map(Container::log_end),
        }
        .unwrap_or_default()
    }

    /// Whether the server has not ended.
    pub(crate) fn is_running(&mut self) -> bool {
        match self {
            Self::Processes(processes) => processes.last_mut().is_some_and(Process::is_running),
            Self::Container(container) => container.as_ref().is_some_and(Container::is_running),
        }
    }

    /// Kills it, and returns when it is gone.
    pub(crate) fn kill(&mut self) {
        match self {
            // The server first: it should not notice that its helpers go.
            Self::Processes(processes) => {
                while let Some(mut process) = processes.pop() {
                    process.kill();
                }
            }
            Self::Container(container) => container.iter().for_each(Container::kill),
        }
    }

    /// Ends it in good order, and kills what is left after a while.
    pub(crate) fn stop(&mut self, recipe: &dyn Recipe, site: &Site) {
        match self {
            Self::Processes(processes) => {
                recipe.before_stop(site);
                if let Some(server) = processes.last_mut() {
                    server.ends_with(recipe.stop_signal(), GRACE);
                }
                self.kill();
            }
            Self::Container(container) => container.iter().for_each(Container::stop),
        }
    }

    /// Stops it where it is.
    pub(crate) fn pause(&self) {
        match self {
            Self::Processes(processes) => processes.iter().rev().for_each(Process::pause),
            Self::Container(container) => container.iter().for_each(Container::pause),
        }
    }

    /// Lets it go on.
    pub(crate) fn resume(&self) {
        match self {
            Self::Processes(processes) => processes.iter().for_each(Process::resume),
            Self::Container(container) => container.iter().for_each(Container::resume),
        }
    }
}
