//! Where programs are.

use std::path::PathBuf;

/// The first program of that name in PATH, or in the folders where Debian puts servers, which an
/// ordinary user's PATH leaves out.
pub(crate) fn program(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .chain(["/usr/sbin", "/usr/local/sbin"].map(PathBuf::from))
        .map(|folder| folder.join(name))
        .find(|file| file.is_file())
}

/// The same, with what to say if there is none.
pub(crate) fn required(name: &str) -> Result<PathBuf, String> {
    program(name).ok_or_else(|| format!("there is no program `{name}`"))
}
