//! The folder that holds a server's data while the server is wanted.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

const PREFIX: &str = "outbox-servers-";
const LOCK: &str = "lock";

/// A temporary folder, removed when dropped.
///
/// A process that is ended by `kill -9` can't remove its folders, so it holds a lock in each, and
/// whoever starts a server later removes those whose lock nobody holds any more.
pub(crate) struct RunFolder {
    folder: TempDir,
    _lock: File,
}

impl RunFolder {
    /// Makes a folder.
    pub(crate) fn create() -> io::Result<Self> {
        // Not in the target folder: a server that runs as another user must
        // be able to enter every folder above its data.
        let parent = std::env::temp_dir();
        remove_abandoned(&parent);
        let folder = tempfile::Builder::new().prefix(PREFIX).tempdir_in(parent)?;
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o711))?;
        // Locked before it gets its name, so that no other process sees it free.
        let nameless = folder.path().join("lock.new");
        let lock = File::create(&nameless)?;
        lock.lock()?;
        fs::rename(&nameless, folder.path().join(LOCK))?;
        let made = Self {
            folder,
            _lock: lock,
        };
        fs::create_dir(made.of_server())?;
        Ok(made)
    }

    /// The folder inside that is the server's own.
    pub(crate) fn of_server(&self) -> PathBuf {
        self.folder.path().join("server")
    }
}

fn remove_abandoned(parent: &Path) {
    let Ok(entries) = fs::read_dir(parent) else {
        return;
    };
    for entry in entries.flatten() {
        let ours = entry.file_name().to_string_lossy().starts_with(PREFIX);
        if ours && is_abandoned(&entry.path()) {
            let _still_there = fs::remove_dir_all(entry.path());
        }
    }
}

fn is_abandoned(folder: &Path) -> bool {
    File::open(folder.join(LOCK)).is_ok_and(|lock| lock.try_lock().is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_folders_without_a_living_owner_are_abandoned() {
        let living = RunFolder::create().unwrap();
        assert!(!is_abandoned(living.folder.path()));

        let dead = tempfile::tempdir().unwrap();
        assert!(
            !is_abandoned(dead.path()),
            "a folder without a lock is not ours"
        );
        File::create(dead.path().join(LOCK)).unwrap();
        assert!(is_abandoned(dead.path()));
    }
}
