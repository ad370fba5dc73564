//! A throw-away PostgreSQL.

use std::fs;
use std::os::unix::fs::chown;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result};
use rustix::process::{Signal, geteuid};

use super::Recipe;
use super::docker::Image;
use super::local::{self, LocalServer};
use crate::workspace::Workspace;
use crate::{install, process, tools};

pub(super) struct Postgres {
    pub(super) durability: Durability,
}

/// What a commit survives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Durability {
    /// The end of the server's process.
    Tests,
    /// The end of the machine too: PostgreSQL's own defaults.
    Default,
}

/// Server settings.
///
/// `fsync` and `full_page_writes` are off: they guard against a crash of the
/// machine, which a throw-away server does not survive anyway. What the tests
/// can see stays as in production: `synchronous_commit` keeps its default
/// (on), so a commit still waits for its own log record, and a killed server
/// process loses nothing that was committed.
const SETTINGS: [&str; 6] = [
    "-cwal_level=logical",
    "-cmax_connections=250",
    "-cmax_wal_senders=20",
    "-cmax_replication_slots=20",
    "-cfsync=off",
    "-cfull_page_writes=off",
];

/// All else is as PostgreSQL comes: what is measured is what users have.
const DEFAULT_SETTINGS: [&str; 1] = ["-cmax_connections=250"];

impl Durability {
    const fn settings(self) -> &'static [&'static str] {
        match self {
            Self::Tests => &SETTINGS,
            Self::Default => &DEFAULT_SETTINGS,
        }
    }
}

const ATTEMPTS: usize = 3;

impl Recipe for Postgres {
    fn name(&self) -> &'static str {
        "PostgreSQL"
    }

    fn variable(&self) -> &'static str {
        "OUTBOX_TEST_POSTGRES_URL"
    }

    /// In PATH, else the newest of Debian's versioned folders.
    fn find(&self) -> Option<PathBuf> {
        let in_path =
            tools::find_in_path("postgres").and_then(|file| Some(file.parent()?.to_owned()));
        in_path.into_iter().chain(debian_folders()).find(|folder| {
            ["postgres", "initdb"]
                .iter()
                .all(|binary| folder.join(binary).is_file())
        })
    }

    fn install(&self, _workspace: &Workspace) -> Result<()> {
        install::with_apt(&["postgresql"])
    }

    fn start(&self, binaries: &Path, folder: &Path) -> Result<LocalServer> {
        let owner = Owner::choose()?;
        owner.give(folder)?;
        let data = folder.join("data");
        process::capture(
            owner
                .command(binaries.join("initdb"), folder)
                .args([
                    "--auth=trust",
                    "--username=postgres",
                    "--encoding=UTF8",
                    "--no-locale",
                ])
                .args(["--no-sync", "--pgdata"])
                .arg(&data),
        )?;
        let settings = self.durability.settings();
        let mut attempt = 1;
        loop {
            match start_on(
                local::free_port()?,
                &owner,
                binaries,
                folder,
                &data,
                settings,
            ) {
                Err(_) if attempt < ATTEMPTS && process::check_interrupted().is_ok() => {
                    attempt += 1
                }
                result => return result,
            }
        }
    }

    fn image(&self) -> Image {
        Image {
            name: "postgres:17",
            environment: &[("POSTGRES_HOST_AUTH_METHOD", "trust")],
            arguments: self.durability.settings(),
            port: 5432,
            // By TCP: while it initialises, the image's server listens on its socket only.
            ready: &["pg_isready", "--host=127.0.0.1", "--username=postgres"],
            url,
        }
    }
}

fn start_on(
    port: u16,
    owner: &Owner,
    binaries: &Path,
    folder: &Path,
    data: &Path,
    settings: &[&str],
) -> Result<LocalServer> {
    // SIGINT is PostgreSQL's fast shutdown: sessions end at once.
    let mut command = local::tied_to_us(&binaries.join("postgres"), "INT");
    owner.apply(&mut command, folder);
    command.arg("-D").arg(data).arg("-p").arg(port.to_string());
    command
        .args(["-clisten_addresses=127.0.0.1", "-cunix_socket_directories="])
        .args(settings);
    let log = folder.join("postgres.log");
    LocalServer::spawn(command, url(port), log, Signal::INT)?
        .wait_until(Duration::from_secs(60), || is_ready(data))
}

/// What `pg_ctl --wait` looks at: the eighth line of the process id file.
fn is_ready(data: &Path) -> bool {
    let text = fs::read_to_string(data.join("postmaster.pid")).unwrap_or_default();
    text.lines()
        .nth(7)
        .is_some_and(|status| status.trim() == "ready")
}

fn url(port: u16) -> String {
    format!("postgres://postgres@127.0.0.1:{port}/postgres")
}

fn debian_folders() -> Vec<PathBuf> {
    let entries = fs::read_dir("/usr/lib/postgresql")
        .into_iter()
        .flatten()
        .flatten();
    let mut versions: Vec<(u32, PathBuf)> = entries
        .filter_map(|entry| {
            let version = entry.file_name().to_str()?.parse().ok()?;
            Some((version, entry.path().join("bin")))
        })
        .collect();
    versions.sort_by_key(|(version, _)| std::cmp::Reverse(*version));
    versions.into_iter().map(|(_, folder)| folder).collect()
}

/// Who the server runs as: PostgreSQL refuses to run as root.
enum Owner {
    Ourselves,
    User { uid: u32, gid: u32 },
}

impl Owner {
    fn choose() -> Result<Self> {
        if !geteuid().is_root() {
            return Ok(Self::Ourselves);
        }
        let id = |flag: &str| -> Result<u32> {
            let text = process::capture(Command::new("id").args([flag, "postgres"])).context(
                "PostgreSQL does not run as root, and there is no user `postgres` to run it as: \
                 run this command as another user, or create that one",
            )?;
            Ok(text.trim().parse()?)
        };
        Ok(Self::User {
            uid: id("-u")?,
            gid: id("-g")?,
        })
    }

    fn give(&self, folder: &Path) -> Result<()> {
        if let Self::User { uid, gid } = self {
            chown(folder, Some(*uid), Some(*gid))
                .with_context(|| format!("cannot give {} to the server", folder.display()))?;
        }
        Ok(())
    }

    fn command(&self, program: PathBuf, folder: &Path) -> Command {
        let mut command = Command::new(program);
        self.apply(&mut command, folder);
        command
    }

    fn apply(&self, command: &mut Command, folder: &Path) {
        // Our own current folder may be closed to the other user.
        command.current_dir(folder);
        if let Self::User { uid, gid } = self {
            command.uid(*uid).gid(*gid);
        }
    }
}
