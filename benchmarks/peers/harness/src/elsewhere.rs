use std::env;
use std::path::PathBuf;
use std::process::{Command, ExitStatus};

use anyhow::{Context, Result, ensure};

/// A system that cannot be built together with the others, and the program that measures it.
///
/// The program is looked for beside the running one and given the same arguments.
#[derive(Debug, Clone, Copy)]
pub struct Elsewhere {
    /// The name of the system.
    pub system: &'static str,
    /// The name of the program, which is that of its package.
    pub program: &'static str,
}

impl Elsewhere {
    /// Lets the other program do what this one was told.
    pub(crate) fn run(&self) -> Result<ExitStatus> {
        let path = self.path()?;
        ensure!(
            path.exists(),
            "{} is measured by a program of its own, {}, which has yet to be built into the same target folder",
            self.system,
            self.program
        );
        Command::new(&path)
            .args(env::args_os().skip(1))
            .status()
            .with_context(|| format!("cannot run {}", path.display()))
    }

    fn path(&self) -> Result<PathBuf> {
        let beside = env::current_exe()?.with_file_name(self.program);
        Ok(beside.with_extension(env::consts::EXE_EXTENSION))
    }
}
