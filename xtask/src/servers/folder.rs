//! The folder that holds the servers' data for the time of one run.

use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use tempfile::TempDir;

const PREFIX: &str = "outbox-xtask-";
const LOCK: &str = "lock";

/// A temporary folder, removed when dropped.
///
/// A run that is ended by `kill -9` can't remove its folder, so each run holds
/// a lock in its own and removes those whose lock nobody holds any more.
pub(super) struct RunFolder {
    folder: TempDir,
    _lock: File,
}

impl RunFolder {
    pub(super) fn create() -> Result<Self> {
        // Not in the target folder: a server that runs as another user must
        // be able to enter every folder above its data.
        let parent = std::env::temp_dir();
        remove_abandoned(&parent);
        let folder = tempfile::Builder::new()
            .prefix(PREFIX)
            .tempdir_in(&parent)
            .with_context(|| format!("cannot create a folder in {}", parent.display()))?;
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o711))?;
        // Locked before it gets its name, so that no other run sees it free.
        let nameless = folder.path().join("lock.new");
        let lock = File::create(&nameless)?;
        lock.lock()?;
        fs::rename(&nameless, folder.path().join(LOCK))?;
        Ok(Self {
            folder,
            _lock: lock,
        })
    }

    /// A new folder inside for one server.
    pub(super) fn of(&self, server: &str) -> Result<PathBuf> {
        let folder = self.folder.path().join(server.to_lowercase());
        fs::create_dir(&folder)
            .with_context(|| format!("cannot create the folder {}", folder.display()))?;
        Ok(folder)
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
