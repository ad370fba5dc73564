//! Short commands and where programs are: for this crate, and for the tasks that install servers.

use std::ffi::OsStr;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::PathBuf;
use std::process::{Command, ExitStatus, Stdio};

/// A command that did not do what it was for.
#[derive(Debug, thiserror::Error)]
pub enum CommandError {
    /// It can't be started.
    #[error("cannot start {program}: {why}")]
    NotStarted {
        /// What was to be started.
        program: String,
        /// Why not.
        why: std::io::Error,
    },
    /// It ended without success.
    #[error("{program} {how}: {stderr}")]
    Failed {
        /// What was started.
        program: String,
        /// How it ended.
        how: String,
        /// What it printed to standard error.
        stderr: String,
    },
}

/// Runs a short command quietly, in a process group of its own, and returns its standard output.
///
/// # Errors
/// If it can't be started or does not succeed; with its standard error.
pub fn capture(command: &mut Command) -> Result<String, CommandError> {
    let output = command.stdin(Stdio::null()).process_group(0).output();
    let output = output.map_err(|why| CommandError::NotStarted {
        program: name(command),
        why,
    })?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let stderr = String::from_utf8_lossy(&output.stderr);
    Err(CommandError::Failed {
        program: name(command),
        how: describe(output.status),
        stderr: stderr.trim().to_owned(),
    })
}

/// Says in words how a process ended.
#[must_use]
pub fn describe(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(0), _) => "succeeded".to_owned(),
        (Some(code), _) => format!("failed with exit code {code}"),
        (None, Some(signal)) => format!("was ended by signal {signal}"),
        (None, None) => "ended".to_owned(),
    }
}

/// The first program of that name in PATH, or in the folders where Debian puts servers, which an
/// ordinary user's PATH leaves out.
#[must_use]
pub fn find(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .chain(["/usr/sbin", "/usr/local/sbin"].map(PathBuf::from))
        .map(|folder| folder.join(program))
        .find(|file| file.is_file())
}

/// The same, with what to say if there is none.
pub(crate) fn required(program: &str) -> Result<PathBuf, String> {
    find(program).ok_or_else(|| format!("there is no program `{program}`"))
}

/// The program that a command runs.
pub(crate) fn name(command: &Command) -> String {
    let of = |word: &OsStr| word.to_string_lossy().into_owned();
    // The program that is wrapped says more than its wrapper.
    let wrapped = command.get_args().skip_while(|word| *word != "--").nth(1);
    of(wrapped.unwrap_or(command.get_program()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_says_what_the_command_said() {
        let printed = capture(Command::new("sh").args(["-c", "echo fine"]));
        assert_eq!(printed.unwrap(), "fine\n");
        let failed = capture(Command::new("sh").args(["-c", "echo broken >&2; exit 7"]));
        assert_eq!(
            failed.unwrap_err().to_string(),
            "sh failed with exit code 7: broken"
        );
        assert!(capture(&mut Command::new("/no/such/program")).is_err());
    }

    #[test]
    fn a_wrapped_program_is_named() {
        let mut command = Command::new("wrapper");
        command.args(["--flag", "--", "server", "-p", "1"]);
        assert_eq!(name(&command), "server");
        assert_eq!(name(Command::new("alone").arg("x")), "alone");
    }
}
