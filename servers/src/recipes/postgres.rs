//! PostgreSQL.

use std::fs;
use std::os::unix::fs::chown;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::process::{Signal, geteuid};

use super::{Recipe, Site};
use crate::command::{self, capture};
use crate::docker::Image;
use crate::ports;
use crate::process::Process;

pub(super) struct Postgres;

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
const DURABLE_SETTINGS: [&str; 1] = ["-cmax_connections=250"];

/// What a server is started with.
const fn settings(durable: bool) -> &'static [&'static str] {
    if durable {
        &DURABLE_SETTINGS
    } else {
        &SETTINGS
    }
}

impl Recipe for Postgres {
    /// In PATH, else the newest of Debian's versioned folders.
    fn find(&self) -> Result<PathBuf, String> {
        let in_path = command::find("postgres").and_then(|file| Some(file.parent()?.to_owned()));
        in_path
            .into_iter()
            .chain(debian_folders())
            .find(|folder| {
                ["postgres", "initdb"]
                    .iter()
                    .all(|binary| folder.join(binary).is_file())
            })
            .map(|folder| folder.join("postgres"))
            .ok_or_else(|| "there are no programs `postgres` and `initdb`".to_owned())
    }

    fn can_be_closed(&self) -> bool {
        false
    }

    fn prepare(&self, site: &Site) -> Result<(), String> {
        let owner = Owner::choose()?;
        owner.give(&site.folder)?;
        let mut command = Command::new(site.program().with_file_name("initdb"));
        owner.apply(&mut command);
        command
            .current_dir(&site.folder)
            .args(["--auth=trust", "--username=postgres", "--encoding=UTF8"])
            .args(["--no-locale", "--no-sync", "--pgdata"])
            .arg(data(site));
        capture(&mut command)
            .map(drop)
            .map_err(|error| error.to_string())
    }

    fn launch(&self, site: &Site, processes: &mut Vec<Process>) -> Result<(), String> {
        // PostgreSQL believes what a killed one left, if its number is another process's by now.
        let _none = fs::remove_file(status_file(site));
        // SIGINT is PostgreSQL's fast shutdown: sessions end at once.
        let mut command = site.command(site.program(), "INT");
        Owner::choose()?.apply(&mut command);
        command.arg("-D").arg(data(site));
        command
            .args(["-p", &site.port.to_string()])
            .args(["-clisten_addresses=127.0.0.1", "-cunix_socket_directories="])
            .args(settings(site.setup.durable));
        processes.push(site.spawn(command, "postgres")?);
        Ok(())
    }

    /// It lets somebody in: while it starts, it answers with an error.
    fn is_ready(&self, site: &Site) -> bool {
        // Its length, version 3.0, whom.
        let greeting = b"\0\0\0\x17\0\x03\0\0user\0postgres\0\0";
        ports::ask(site.port, greeting, |said| !said.is_empty()).starts_with(b"R")
    }

    fn url(&self, site: &Site) -> String {
        site.address("postgres", "postgres", "postgres@") + "/postgres"
    }

    fn image(&self, site: &Site) -> Image {
        Image {
            name: "postgres:17",
            environment: vec![("POSTGRES_HOST_AUTH_METHOD", "trust".to_owned())],
            arguments: settings(site.setup.durable),
            port: 5432,
        }
    }

    fn stop_signal(&self) -> Signal {
        Signal::INT
    }

    /// A piece of shared memory stays in the system if it is killed.
    fn leaves_traces(&self) -> bool {
        true
    }

    /// The seventh line of what is left has its number, behind its key.
    fn clear(&self, site: &Site) {
        let text = fs::read_to_string(status_file(site)).unwrap_or_default();
        let line = text.lines().nth(6).unwrap_or_default();
        if let Some(number) = line.split_whitespace().nth(1) {
            let _gone = capture(Command::new("ipcrm").args(["-m", number]));
        }
    }
}

fn data(site: &Site) -> PathBuf {
    site.folder.join("data")
}

/// It is there while a server runs, and after one was killed.
fn status_file(site: &Site) -> PathBuf {
    data(site).join("postmaster.pid")
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
    fn choose() -> Result<Self, String> {
        if !geteuid().is_root() {
            return Ok(Self::Ourselves);
        }
        let id = |flag: &str| {
            let text = capture(Command::new("id").args([flag, "postgres"])).map_err(|error| {
                format!(
                    "PostgreSQL does not run as root, and there is no user `postgres` to run it \
                     as: run this command as another user, or create that one ({error})"
                )
            })?;
            text.trim()
                .parse()
                .map_err(|_| format!("`id` says {text:?}, which is no number"))
        };
        Ok(Self::User {
            uid: id("-u")?,
            gid: id("-g")?,
        })
    }

    fn give(&self, folder: &Path) -> Result<(), String> {
        match self {
            Self::Ourselves => Ok(()),
            Self::User { uid, gid } => chown(folder, Some(*uid), Some(*gid)).map_err(|error| {
                format!("cannot give {} to the server: {error}", folder.display())
            }),
        }
    }

    fn apply(&self, command: &mut Command) {
        if let Self::User { uid, gid } = self {
            command.uid(*uid).gid(*gid);
        }
    }
}
