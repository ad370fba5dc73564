//! A server that this process started.

use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use crate::folder::RunFolder;
use crate::host::{Host, Programs};
use crate::recipes::{self, Recipe, Site};
use crate::tls::Certificates;
use crate::{Kind, Setup, StartError, ports};

/// How long a server may take until it serves: RabbitMQ needs a while on a busy machine.
const PATIENCE: Duration = Duration::from_secs(120);

/// How often it is started on another port, should somebody take its own.
const ATTEMPTS: usize = 3;

/// A running server on loopback, with a port and data of its own.
///
/// When it is dropped, all its processes are ended and its data is removed.
pub struct Server {
    // Fields drop in this order: the processes end before their folder goes.
    host: Host,
    kind: Kind,
    recipe: &'static dyn Recipe,
    site: Site,
    url: String,
    _folder: RunFolder,
}

impl Server {
    /// Starts a server and waits until it serves.
    ///
    /// # Errors
    /// [`StartError::NotInstalled`] if there is no such program on this machine, and
    /// [`StartError::Failed`] if it is there and does not serve.
    pub fn start(kind: Kind) -> Result<Self, StartError> {
        Self::start_with(kind, Setup::default())
    }

    /// The same, set up in another way.
    ///
    /// # Errors
    /// As [`start`](Self::start); also [`StartError::Failed`] if this kind can't be set up so.
    pub fn start_with(kind: Kind, setup: Setup) -> Result<Self, StartError> {
        let recipe = recipes::of(kind);
        let programs = Programs::choose(kind, recipe)?;
        check(kind, recipe, &programs, &setup)?;
        let failed = |why| StartError::Failed { kind, why };
        let folder = RunFolder::create()
            .map_err(|error| failed(format!("its folder can't be made: {error}")))?;
        let certificates = setup.tls.then(|| Certificates::make(&folder.of_server()));
        let site = Site {
            programs,
            folder: folder.of_server(),
            port: ports::free().map_err(failed)?,
            setup,
            certificates: certificates.transpose().map_err(failed)?,
        };
        if let Programs::Installed(_) = site.programs {
            recipe.prepare(&site).map_err(failed)?;
        }
        let mut server = Self {
            host: Host::new(&site.programs),
            kind,
            recipe,
            url: recipe.url(&site),
            site,
            _folder: folder,
        };
        let mut attempt = 1;
        loop {
            match server.launch() {
                // It ended by itself, perhaps since somebody else took its port.
                Err(Trouble::Ended(_)) if attempt < ATTEMPTS => attempt += 1,
                Err(trouble) => return Err(failed(trouble.into_text())),
                Ok(()) => return Ok(server),
            }
            server.host.forget();
            server.site.port = ports::free().map_err(failed)?;
            server.url = recipe.url(&server.site);
        }
    }

    /// What it is.
    #[must_use]
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// Its address, which stays the same also while it is down.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Its port on 127.0.0.1.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.site.port
    }

    /// The certificate of the authority that vouches for it, as PEM, if it speaks TLS.
    #[must_use]
    pub fn ca(&self) -> Option<&Path> {
        let certificates = self.site.certificates.as_ref()?;
        Some(&certificates.ca)
    }

    /// Where it comes from, for people: a program or an image.
    #[must_use]
    pub fn origin(&self) -> String {
        match &self.site.programs {
            Programs::Installed(program) => program.display().to_string(),
            Programs::Image(_) => format!("Docker, {}", self.recipe.image(&self.site).name),
        }
    }

    /// Kills all its processes (SIGKILL), and returns when they are gone.
    pub fn kill(&mut self) {
        self.host.kill();
    }

    /// Ends it in good order; what has not ended after 10 seconds is killed.
    pub fn stop(&mut self) {
        self.host.stop(self.recipe, &self.site);
    }

    /// Stops all its processes where they are (SIGSTOP): connections stay open and nothing answers.
    pub fn pause(&self) {
        self.host.pause();
    }

    /// Lets them go on (SIGCONT).
    pub fn resume(&self) {
        self.host.resume();
    }

    /// Starts it again after [`kill`](Self::kill) or [`stop`](Self::stop), with the same port and
    /// data, and waits until it serves. Nothing happens if it runs.
    ///
    /// # Errors
    /// [`StartError::Failed`] if it does not serve.
    pub fn run(&mut self) -> Result<(), StartError> {
        if self.is_running() {
            return Ok(());
        }
        let kind = self.kind;
        self.launch().map_err(|trouble| StartError::Failed {
            kind,
            why: trouble.into_text(),
        })
    }

    /// Whether it has not ended; a paused server is running.
    pub fn is_running(&mut self) -> bool {
        self.host.is_running()
    }

    fn launch(&mut self) -> Result<(), Trouble> {
        self.kill();
        let launched = self.host.launch(self.recipe, &self.site);
        let result = launched
            .map_err(Trouble::Other)
            .and_then(|()| self.wait_until_ready());
        if result.is_err() {
            self.kill();
        }
        result
    }

    fn wait_until_ready(&mut self) -> Result<(), Trouble> {
        let since = Instant::now();
        while !self.recipe.is_ready(&self.site) {
            if let Some(how) = self.host.ended() {
                return Err(Trouble::Ended(how));
            }
            if (self.site.setup.give_up)() {
                return Err(Trouble::Other("it is no longer wanted".to_owned()));
            }
            if since.elapsed() > PATIENCE {
                let (seconds, log) = (PATIENCE.as_secs(), self.host.log_end());
                let text = format!("it does not serve after {seconds} s:\n{log}");
                return Err(Trouble::Other(text));
            }
            thread::sleep(Duration::from_millis(20));
        }
        // Somebody else may have answered in its place.
        match self.host.ended() {
            Some(how) => Err(Trouble::Ended(how)),
            None => Ok(()),
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if self.recipe.leaves_traces() && self.is_running() {
            self.stop();
        } else {
            self.kill();
            self.recipe.clear(&self.site);
        }
    }
}

impl std::fmt::Debug for Server {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Without the URL, which may hold a password.
        f.debug_struct("Server")
            .field("kind", &self.kind)
            .field("port", &self.site.port)
            .finish_non_exhaustive()
    }
}

/// Whether a server can be set up so.
fn check(
    kind: Kind,
    recipe: &dyn Recipe,
    programs: &Programs,
    setup: &Setup,
) -> Result<(), StartError> {
    let closed = setup.tls || setup.credentials.is_some();
    if closed && !recipe.can_be_closed() {
        let why = "it is run here without TLS and credentials".to_owned();
        return Err(StartError::Failed { kind, why });
    }
    if let (Programs::Image(_), true) = (programs, closed || !setup.environment.is_empty()) {
        let why = "it is run in a container only as it comes".to_owned();
        return Err(StartError::NotInstalled { kind, why });
    }
    Ok(())
}

/// Why a start came to nothing.
enum Trouble {
    Ended(String),
    Other(String),
}

impl Trouble {
    fn into_text(self) -> String {
        match self {
            Self::Ended(text) | Self::Other(text) => text,
        }
    }
}
