use std::fs;
use std::path::{Path, PathBuf};

use outbox_servers::{Kind, Server, Setup, StartError};

use super::database::{FaultDb, schema};
use crate::Fixture;

/// What a run has to be able to do with its database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Needs {
    /// Nothing that others would notice.
    Nothing,
    /// Stop it and start it again.
    Restarts,
    /// Set its clock.
    Clock,
}

/// Why something could not be tried on this machine.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct NotExercised(pub String);

/// The database of one run, and what makes it suffer.
pub struct Arena<DB: FaultDb> {
    /// The database.
    pub fixture: Fixture<DB>,
    /// A server of the run's own, where one is needed.
    pub(super) server: Option<Server>,
    /// What sets the clock of processes, where that is needed.
    pub clock: Option<ClockFile>,
}

impl<DB: FaultDb> Arena<DB> {
    pub(super) async fn furnish(
        fixture: Fixture<DB>,
        server: Option<Server>,
        clock: Option<ClockFile>,
    ) -> Self {
        fixture.run_sql(&schema::<DB>()).await;
        Self {
            fixture,
            server,
            clock,
        }
    }
}

/// A server of one run's own, so that no other test notices what happens to it.
///
/// # Errors
/// [`NotExercised`] if this machine does not have it.
///
/// # Panics
/// If it is there and does not serve.
pub(super) fn own_server(kind: Kind, setup: Setup) -> Result<Server, NotExercised> {
    match Server::start_with(kind, setup) {
        Ok(server) => Ok(server),
        Err(error @ StartError::NotInstalled { .. }) => Err(NotExercised(error.to_string())),
        Err(error) => panic!("{error}"),
    }
}

/// A clock that the processes go by which were started with it: libfaketime's.
#[derive(Debug)]
pub struct ClockFile {
    library: PathBuf,
    file: PathBuf,
    _folder: tempfile::TempDir,
}

impl ClockFile {
    /// A clock that shows the time of day.
    ///
    /// # Errors
    /// [`NotExercised`] if the library is not installed.
    pub fn new() -> Result<Self, NotExercised> {
        let library = library().ok_or_else(|| {
            NotExercised("libfaketime is not installed (Debian's package `faketime`)".to_owned())
        })?;
        let folder = tempfile::tempdir().expect("a temporary folder");
        open_to_all(folder.path());
        let clock = Self {
            library,
            file: folder.path().join("offset"),
            _folder: folder,
        };
        clock.shift(0);
        Ok(clock)
    }

    /// Lets the clock show so many seconds more, or less, than the time of day.
    pub fn shift(&self, seconds: i64) {
        let next = self.file.with_extension("next");
        fs::write(&next, format!("{seconds:+}\n")).expect("the folder takes a file");
        fs::rename(next, &self.file).expect("the folder takes a file");
    }

    /// What a process needs in its environment to go by this clock. Its monotonic clock stays.
    pub fn environment(&self) -> Vec<(String, String)> {
        let text = |path: &Path| path.display().to_string();
        [
            ("LD_PRELOAD", text(&self.library)),
            ("FAKETIME_TIMESTAMP_FILE", text(&self.file)),
            ("FAKETIME_NO_CACHE", "1".to_owned()),
            ("DONT_FAKE_MONOTONIC", "1".to_owned()),
            ("FAKETIME_DONT_FAKE_MONOTONIC", "1".to_owned()),
            ("NO_FAKE_STAT", "1".to_owned()),
        ]
        .map(|(name, value)| (name.to_owned(), value))
        .to_vec()
    }
}

fn library() -> Option<PathBuf> {
    // Debian: /usr/lib/x86_64-linux-gnu/faketime/. The variant for programs with threads first.
    let folders = fs::read_dir("/usr/lib").into_iter().flatten().flatten();
    let folders: Vec<_> = folders
        .map(|folder| folder.path().join("faketime"))
        .collect();
    ["libfaketimeMT.so.1", "libfaketime.so.1"]
        .iter()
        .find_map(|name| {
            let files = folders.iter().map(|folder| folder.join(name));
            files.into_iter().find(|file| file.is_file())
        })
}

/// Lets processes of other users read what is in a folder.
pub(super) fn open_to_all(folder: &Path) {
    use std::os::unix::fs::PermissionsExt;
    let open = fs::Permissions::from_mode(0o755);
    fs::set_permissions(folder, open).expect("the folder is ours");
}
